"""A LiteLLM proxy whose calls are limited, over HTTP."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
import uvicorn
import yaml
from conftest import LIMITS
from litellm.proxy.types_utils.utils import get_instance_fn
from model_server import BREAK_LATER, FAIL, INPUT, OUTPUT, SILENCE, STALL, break_now
from zae_limiter_rs import OnUnavailable, RateLimiter, Repository
from zae_limiter_rs.adapters import ModelLimits
from zae_limiter_rs.adapters.litellm import LiteLLMHook, entity_of_key

import proxy_hook

USED = INPUT + OUTPUT
_NUMBERS = count(1)


@pytest.fixture(scope="session")
def proxy(served: tuple[str, list[Any]], tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """The proxy, in a thread."""
    folder: Path = tmp_path_factory.mktemp("proxy")
    (folder / "limits.py").write_text("from proxy_hook import hook\n")

    def model(name: str, provider: str, base: str) -> dict[str, Any]:
        return {"model_name": name, "litellm_params": {"model": f"{provider}/{name}", "api_base": base, "api_key": "key"}}

    url = served[0]
    models = [model(name, "openai", f"{url}/v1") for name in ("small", "embed", "free")]
    models += [model("claude", "anthropic", url), model("gone", "openai", "http://127.0.0.1:1/v1")]
    settings = {
        "model_list": models,
        "litellm_settings": {"callbacks": "limits.hook", "num_retries": 0},
        "router_settings": {"num_retries": 0, "disable_cooldowns": True},
        "general_settings": {"master_key": "sk-test"},
    }
    # Any JSON is YAML.
    (folder / "config.yaml").write_text(json.dumps(settings))
    os.environ["WORKER_CONFIG"] = json.dumps({"config": str(folder / "config.yaml")})
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    asyncio.run(proxy_hook.configure())

    from litellm.proxy.proxy_server import app

    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
    thread = threading.Thread(target=lambda: server.run(sockets=[listener]), daemon=True)
    thread.start()
    port = listener.getsockname()[1]
    headers = {"Authorization": "Bearer sk-test"}
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=600) as client:
        while client.get("/health/liveliness").status_code != 200:
            time.sleep(0.1)
        yield client
    server.should_exit = True
    thread.join()


@pytest.fixture
def caller() -> str:
    proxy_hook.callers.append(f"caller-{next(_NUMBERS)}")
    return proxy_hook.callers[-1]


def left(caller: str, model: str = "small") -> tuple[int, int]:
    """What is left when the proxy has logged every call."""
    # A call that is not held any more may still be ending.
    while proxy_hook.hook._held or proxy_hook.hook.ending:
        time.sleep(0.01)

    async def read() -> dict[str, int]:
        await proxy_hook.limiter.settled()
        return await proxy_hook.limiter.available(caller, model)

    available = asyncio.run(read())
    return available["rpm"], available["tpm"]


def chat(text: str, **options: Any) -> dict[str, Any]:
    return {"model": "small", "messages": [{"role": "user", "content": text}], **options}


def test_the_usage_replaces_the_estimate(proxy: httpx.Client, caller: str, requests: list[Any]) -> None:
    response = proxy.post("/v1/chat/completions", json=chat("hello", metadata={"of": "the caller"}))
    assert response.json()["usage"]["total_tokens"] == USED
    assert left(caller) == (9, 10_000 - USED)
    # Nothing of the limiter reaches the provider.
    assert "zae" not in json.dumps(requests)


def test_streams_are_settled_too(proxy: httpx.Client, caller: str) -> None:
    with proxy.stream("POST", "/v1/chat/completions", json=chat("hello", stream=True)) as response:
        assert "Hello" in "".join(response.iter_text())
    assert left(caller) == (9, 10_000 - USED)


def test_messages_of_anthropic_and_embeddings(proxy: httpx.Client, caller: str) -> None:
    body = {"model": "claude", "max_tokens": 90, "messages": [{"role": "user", "content": "x" * 40}]}
    assert proxy.post("/v1/messages", json=body).json()["content"][0]["text"] == "Hello"
    whole = left(caller, "claude")
    assert whole[0] == 9 and 10_000 - USED - 8 <= whole[1] <= 10_000 - USED
    with proxy.stream("POST", "/v1/messages", json={**body, "stream": True}) as response:
        assert "message_stop" in "".join(response.iter_text())
    assert left(caller, "claude") == (8, 2 * whole[1] - 10_000)
    assert proxy.post("/v1/embeddings", json={"model": "embed", "input": ["hello"]}).status_code == 200
    assert left(caller, "embed") == (9, 10_000 - INPUT)


def test_a_failure_costs_nothing(proxy: httpx.Client, caller: str) -> None:
    assert proxy.post("/v1/chat/completions", json=chat(FAIL)).status_code == 400
    assert proxy.post("/v1/chat/completions", json=chat(FAIL, stream=True)).status_code == 400
    assert left(caller) == (10, 10_000)
    assert proxy.post("/v1/chat/completions", json=chat("hello") | {"model": "gone"}).status_code >= 500
    assert left(caller, "gone") == (10, 10_000)


def test_a_refusal_is_429_with_retry_after(proxy: httpx.Client, caller: str) -> None:
    proxy.post("/v1/chat/completions", json=chat("hello", max_completion_tokens=9_000))

    async def use_up() -> None:
        async with proxy_hook.limiter.acquire(caller, "small", {"tpm": 9_900}):
            pass

    assert left(caller)[0] == 9
    asyncio.run(use_up())
    refused = proxy.post("/v1/chat/completions", json=chat("hello", max_completion_tokens=100))
    assert refused.status_code == 429
    assert int(refused.headers["Retry-After"]) > 0
    assert "Rate limit exceeded" in refused.text
    never = proxy.post("/v1/chat/completions", json=chat("hello", max_completion_tokens=20_000))
    assert (never.status_code, "Retry-After" in never.headers) == (400, False)
    assert "never pass" in never.text


def test_images_are_not_counted_as_text(proxy: httpx.Client, caller: str) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 200_000}}
    assert proxy.post("/v1/chat/completions", json=chat("") | {"messages": [{"role": "user", "content": [image]}]}).is_success
    assert left(caller) == (9, 10_000 - USED)


def test_a_model_without_limits_is_forbidden(proxy: httpx.Client, caller: str) -> None:
    refused = proxy.post("/v1/chat/completions", json=chat("hello") | {"model": "free"})
    assert refused.status_code == 403
    assert "no limits are configured" in refused.text


KEY = SimpleNamespace(key_alias="A key!", user_id=None, team_id=None, token=None)


def nowhere() -> RateLimiter:
    repository = Repository("limiter", region="us-east-1", endpoint_url="http://127.0.0.1:1", time_budget=0.2)
    return RateLimiter(repository=repository)


async def test_policies_for_models_without_limits_and_for_outages() -> None:
    embedded = ModelLimits(limiter=RateLimiter(repository=Repository.embedded()), entity=entity_of_key)
    data = chat("hello", litellm_call_id="c1")
    open_hook = LiteLLMHook(embedded, without_limits="allow")
    await open_hook.async_pre_call_hook(KEY, None, data, "acompletion")
    blocking = LiteLLMHook(ModelLimits(limiter=nowhere(), entity=entity_of_key))
    with pytest.raises(Exception, match="the rate limiter is unavailable") as raised:
        await blocking.async_pre_call_hook(KEY, None, data, "acompletion")
    assert raised.value.status_code == 503  # type: ignore[attr-defined]
    allowing = LiteLLMHook(ModelLimits(limiter=nowhere(), entity=entity_of_key, on_unavailable=OnUnavailable.ALLOW))
    await allowing.async_pre_call_hook(KEY, None, data, "acompletion")
    await allowing.async_log_success_event({"litellm_call_id": "c1"}, None, None, None)


async def test_a_model_without_prices_is_like_one_without_limits() -> None:
    limiter = RateLimiter(repository=Repository.embedded(), default_limits=LIMITS)
    priced = ModelLimits(limiter=limiter, entity=entity_of_key, stored_prices=True)
    data = chat("hello", litellm_call_id="c1")
    with pytest.raises(Exception, match="no prices are configured") as raised:
        await LiteLLMHook(priced).async_pre_call_hook(KEY, None, data, "acompletion")
    assert raised.value.status_code == 403  # type: ignore[attr-defined]
    await LiteLLMHook(priced, without_limits="allow").async_pre_call_hook(KEY, None, data, "acompletion")


async def test_the_files_of_the_guide_limit_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    guide = (Path(__file__).parents[2] / "docs/guide/from-python.md").read_text().partition("## LiteLLM proxy")[2]
    module, configuration = (guide.partition(f"```{language}\n")[2].partition("```")[0] for language in ("python", "yaml"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "limits.py").write_text(module)
    settings = yaml.safe_load(configuration)
    hook = get_instance_fn(settings["litellm_settings"]["callbacks"], str(tmp_path / "config.yaml"))
    data = chat("hello", litellm_call_id="c1") | {"model": settings["model_list"][0]["model_name"]}
    await hook.async_pre_call_hook(KEY, None, data, "acompletion")
    response = {"usage": {"prompt_tokens": INPUT, "completion_tokens": OUTPUT}}
    await hook.async_log_success_event({"litellm_call_id": "c1"}, response, None, None)
    left = await hook._limits.limiter.available("A-key-", "gpt-4o-mini")
    assert left.keys() == {"rpm", "tpm"} and not hook._held


def test_who_pays_is_a_name_that_the_limiter_allows() -> None:
    assert entity_of_key({"user_api_key_dict": KEY}) == "A-key-"
    hashed = SimpleNamespace(key_alias=None, user_id=None, team_id=None, token="_abc")
    assert entity_of_key({"user_api_key_dict": hashed}) == "k_abc"


STALLED: list[tuple[str, dict[str, Any]]] = [
    ("/v1/chat/completions", {"model": "small", "max_tokens": 90, "messages": [{"role": "user", "content": STALL}]}),
    ("/v1/responses", {"model": "small", "max_output_tokens": 90, "input": STALL}),
    ("/v1/messages", {"model": "claude", "max_tokens": 90, "messages": [{"role": "user", "content": STALL}]}),
]


@pytest.mark.parametrize(("path", "body"), STALLED)
def test_a_caller_that_leaves_a_stream_pays_for_what_it_got(
    proxy: httpx.Client, caller: str, path: str, body: dict[str, Any]
) -> None:
    with proxy.stream("POST", path, json={**body, "stream": True}) as response:
        assert next(response.iter_text())
    # The proxy counts the tokens of the part that it has seen.
    rpm, tpm = left(caller, body["model"])
    assert rpm == 9 and 10_000 - 90 < tpm < 10_000


def test_a_caller_that_leaves_before_the_first_event_pays_the_estimate(
    proxy: httpx.Client, caller: str, requests: list[Any]
) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", proxy.base_url.port)
    headers = {"Authorization": "Bearer sk-test", "Content-Type": "application/json"}
    body = chat(SILENCE.ljust(40), stream=True, max_tokens=90)
    connection.request("POST", "/v1/chat/completions", json.dumps(body), headers)
    while not requests:
        time.sleep(0.01)
    connection.close()
    assert left(caller) == (9, 9_900)


def test_a_stream_that_breaks_off_costs_the_estimate(proxy: httpx.Client, caller: str) -> None:
    break_now.clear()
    body = chat(BREAK_LATER.ljust(40), stream=True, max_tokens=90)
    with proxy.stream("POST", "/v1/chat/completions", json=body) as response:
        parts = response.iter_text()
        assert next(parts)
        break_now.set()
        try:
            list(parts)
        except httpx.HTTPError:
            pass
    assert left(caller) == (9, 9_900)
