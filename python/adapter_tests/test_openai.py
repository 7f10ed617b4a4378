"""The client of OpenAI, limited."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import openai
import pytest
from conftest import LIMITS, left, left_now
from model_server import BREAK, FAIL, INPUT, OUTPUT
from pydantic import BaseModel
from zae_limiter_rs import Limit, Prices, RateLimiter, RateLimitExceeded, Repository
from zae_limiter_rs.adapters import ModelLimits, Usage
from zae_limiter_rs.adapters.estimates import usage_of
from zae_limiter_rs.adapters.openai import limit_openai

USED = INPUT + OUTPUT
PROMPT: Any = [{"role": "user", "content": "x" * 40}]


def failing(text: str) -> Any:
    return [{"role": "user", "content": text}]


@pytest.fixture
def client(model_url: str, limits: ModelLimits) -> openai.AsyncOpenAI:
    client = openai.AsyncOpenAI(base_url=f"{model_url}/v1", api_key="key", max_retries=0)
    return limit_openai(client, limits)


@pytest.fixture
def sync_client(model_url: str, sync_limits: ModelLimits) -> openai.OpenAI:
    return limit_openai(openai.OpenAI(base_url=f"{model_url}/v1", api_key="key", max_retries=0), sync_limits)


async def test_the_usage_replaces_the_estimate(client: openai.AsyncOpenAI, limits: ModelLimits) -> None:
    response = await client.chat.completions.create(model="small", messages=PROMPT)
    assert response.choices[0].message.content == '{"text": "Hello"}'
    assert await left(limits) == (9, 10_000 - USED)


async def test_a_call_that_does_not_fit_is_not_sent(
    client: openai.AsyncOpenAI, limits: ModelLimits, requests: list[Any]
) -> None:
    with pytest.raises(RateLimitExceeded) as refused:
        await client.chat.completions.create(model="small", messages=PROMPT, max_completion_tokens=9_991)
    assert [status.requested for status in refused.value.violations] == [10_001]
    assert requests == []
    assert await left(limits) == (10, 10_000)


async def test_an_error_costs_nothing(client: openai.AsyncOpenAI, limits: ModelLimits) -> None:
    for stream in (False, True):
        with pytest.raises(openai.BadRequestError):
            await client.chat.completions.create(model="small", messages=failing(FAIL), stream=stream)
    assert await left(limits) == (10, 10_000)


async def test_a_stream_is_settled_at_its_end(
    client: openai.AsyncOpenAI, limits: ModelLimits, requests: list[Any]
) -> None:
    stream = await client.chat.completions.create(model="small", messages=PROMPT, max_tokens=90, stream=True)
    assert await left(limits) == (9, 9_900)
    chunks = [chunk async for chunk in stream]
    # The event with the usage was not asked for by the caller.
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "Hello world"
    assert requests[0]["stream_options"] == {"include_usage": True}
    assert await left(limits) == (9, 10_000 - USED)


async def test_a_caller_that_asks_for_usage_gets_it(client: openai.AsyncOpenAI, limits: ModelLimits) -> None:
    stream = await client.chat.completions.create(
        model="small", messages=PROMPT, stream=True, stream_options={"include_usage": True}
    )
    async with stream:
        chunks = [chunk async for chunk in stream]
    assert chunks[-1].usage is not None and chunks[-1].usage.total_tokens == USED
    assert await left(limits) == (9, 10_000 - USED)


async def test_a_stream_that_breaks_off_costs_the_estimate(client: openai.AsyncOpenAI, limits: ModelLimits) -> None:
    prompt = failing(BREAK.ljust(40))
    stream = await client.chat.completions.create(model="small", messages=prompt, max_tokens=90, stream=True)
    with pytest.raises(openai.APIError):
        async for _ in stream:
            pass
    assert await left(limits) == (9, 9_900)


async def test_a_stream_that_is_closed_or_dropped_costs_the_estimate(
    client: openai.AsyncOpenAI, limits: ModelLimits
) -> None:
    stream = await client.chat.completions.create(model="small", messages=PROMPT, max_tokens=90, stream=True)
    await stream.close()
    assert await left(limits) == (9, 9_900)
    stream = await client.chat.completions.create(model="small", messages=PROMPT, max_tokens=90, stream=True)
    await stream.response.aclose()
    del stream
    assert await left(limits) == (8, 9_800)


async def test_a_cancelled_call_costs_nothing(client: openai.AsyncOpenAI, limits: ModelLimits) -> None:
    for turns in range(6):
        task = asyncio.create_task(client.chat.completions.create(model="small", messages=failing(FAIL)))
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises((asyncio.CancelledError, openai.BadRequestError)):
            await task
    assert await left(limits) == (10, 10_000)


class Answer(BaseModel):
    text: str


async def test_helpers_are_limited_too(client: openai.AsyncOpenAI, limits: ModelLimits) -> None:
    parsed = await client.chat.completions.parse(model="small", messages=PROMPT, response_format=Answer)
    assert parsed.choices[0].message.parsed == Answer(text="Hello")
    assert await left(limits) == (9, 10_000 - USED)
    async with client.chat.completions.stream(model="small", messages=PROMPT) as stream:
        completion = await stream.get_final_completion()
    assert completion.choices[0].message.content == "Hello world"
    assert await left(limits) == (8, 10_000 - 2 * USED)
    raw = await client.chat.completions.with_raw_response.create(model="small", messages=PROMPT)
    assert raw.status_code == 200
    assert raw.parse().usage.total_tokens == USED
    assert await left(limits) == (7, 10_000 - 3 * USED)
    await client.with_options(timeout=60).chat.completions.create(model="small", messages=PROMPT)
    assert await left(limits) == (6, 10_000 - 4 * USED)


async def test_responses_and_embeddings(client: openai.AsyncOpenAI, limits: ModelLimits) -> None:
    response = await client.responses.create(model="small", input="x" * 40)
    assert response.output_text == "Hello"
    assert await left(limits) == (9, 10_000 - USED)
    stream = await client.responses.create(model="small", input="x" * 40, stream=True)
    assert [event.type async for event in stream][-1] == "response.completed"
    assert await left(limits) == (8, 10_000 - 2 * USED)
    await client.embeddings.create(model="embed", input=["x" * 40], encoding_format="float")
    assert await left(limits, "embed") == (9, 10_000 - INPUT)


async def test_costs_may_tell_kinds_of_tokens_apart(model_url: str, limits: ModelLimits) -> None:
    plain = openai.AsyncOpenAI(base_url=f"{model_url}/v1", api_key="key", max_retries=0)
    weighted = replace(limits, cost=lambda usage: {"tpm": usage.input + 10 * usage.output}, max_output_tokens=100)
    await limit_openai(plain, weighted).responses.create(model="small", input="x")
    # A third of the input came from the cache.
    assert await left(limits) == (10, 10_000 - (INPUT - 10 + 10 * OUTPUT))


def test_the_same_without_asyncio(sync_client: openai.OpenAI, sync_limits: ModelLimits) -> None:
    sync_client.chat.completions.create(model="small", messages=PROMPT)
    assert left_now(sync_limits) == (9, 10_000 - USED)
    stream = sync_client.chat.completions.create(model="small", messages=PROMPT, stream=True)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in stream) == "Hello world"
    assert left_now(sync_limits) == (8, 10_000 - 2 * USED)
    with sync_client.chat.completions.create(model="small", messages=PROMPT, max_tokens=90, stream=True) as stream:
        next(stream)
    assert left_now(sync_limits) == (7, 9_900 - 2 * USED)
    with pytest.raises(openai.BadRequestError):
        sync_client.chat.completions.create(model="small", messages=failing(FAIL))
    assert left_now(sync_limits) == (7, 9_900 - 2 * USED)


async def test_tokens_and_money_are_counted_by_the_stored_prices(model_url: str) -> None:
    usd = Limit.quota("usd", 1_000_000, "1d from first use")
    async with RateLimiter(repository=Repository.embedded(), default_limits=[*LIMITS, usd]) as limiter:
        await limiter.set_prices("small", Prices(input="$2", output="$8", default_output=600, per_call="$0.01"))
        limits = ModelLimits(limiter=limiter, entity="user-1", stored_prices=True)
        client = limit_openai(openai.AsyncOpenAI(base_url=f"{model_url}/v1", api_key="key", max_retries=0), limits)

        async def spent() -> tuple[int, int, int]:
            await limiter.settled()
            left = await limiter.available("user-1", "small")
            return 10 - left["rpm"], 10_000 - left["tpm"], 1_000_000 - left["usd"]

        await client.chat.completions.create(model="small", messages=PROMPT)
        used = (1, USED, INPUT * 2 + OUTPUT * 8 + 10_000)
        assert await spent() == used
        # A stream that is closed costs the estimate: its input, and the output that the prices expect.
        stream = await client.chat.completions.create(model="small", messages=PROMPT, stream=True)
        await anext(aiter(stream))
        await stream.close()
        assert await spent() == (used[0] + 1, used[1] + 10 + 600, used[2] + 10 * 2 + 600 * 8 + 10_000)
        with pytest.raises(openai.BadRequestError):
            await client.chat.completions.create(model="small", messages=failing(FAIL))
        assert (await spent())[0] == 2


async def test_models_share_a_budget(model_url: str) -> None:
    usd = Limit.quota("usd", 1_000_000, "1d from first use")
    async with RateLimiter(repository=Repository.embedded()) as limiter:
        await limiter.set_resource_defaults("budget", [usd])
        for model in ("small", "large"):
            await limiter.set_resource_defaults(model, LIMITS)
            await limiter.set_prices(model, Prices(input="$2", output="$8", default_output=600))
        limits = ModelLimits(limiter=limiter, entity="user-1", stored_prices=True, budget="budget")
        client = limit_openai(openai.AsyncOpenAI(base_url=f"{model_url}/v1", api_key="key", max_retries=0), limits)
        for model in ("small", "large"):
            await client.chat.completions.create(model=model, messages=PROMPT)
        await limiter.settled()
        assert await limiter.available("user-1", "budget") == {"usd": 1_000_000 - 2 * (INPUT * 2 + OUTPUT * 8)}
        assert await limiter.available("user-1", "small") == {"rpm": 9, "tpm": 10_000 - USED}
    with pytest.raises(ValueError, match="needs stored_prices"):
        replace(limits, stored_prices=False)


async def test_a_limiter_of_the_other_kind_is_an_error(model_url: str, sync_limits: ModelLimits) -> None:
    client = limit_openai(openai.AsyncOpenAI(base_url=f"{model_url}/v1", api_key="key"), sync_limits)
    with pytest.raises(TypeError, match="needs a RateLimiter"):
        await client.chat.completions.create(model="small", messages=PROMPT)


def test_no_token_is_in_two_numbers_of_a_usage() -> None:
    details = {"prompt_tokens_details": {"cached_tokens": 5}}
    # As LiteLLM reports a call of Anthropic, and as Anthropic does.
    within = {"prompt_tokens": 38, "completion_tokens": 2, "cache_creation_input_tokens": 3, "cache_read_input_tokens": 5}
    beside = {"input_tokens": 30, "output_tokens": 2, "cache_creation_input_tokens": 3, "cache_read_input_tokens": 5}
    assert usage_of(within | details) == usage_of(beside) == Usage(30, 2, 5, 3)
    assert usage_of({"prompt_tokens": 30, "completion_tokens": 2} | details) == Usage(25, 2, 5)


def test_an_estimate_counts_files_and_not_their_content(sync_limits: ModelLimits) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 1_000_000}}
    content = [{"type": "text", "text": "x" * 40}, image]
    arguments = {"messages": [{"role": "user", "content": content}], "max_tokens": 50}
    assert sync_limits.estimate(arguments) == Usage(input=1_010, output=50)
    assert replace(sync_limits, max_output_tokens=20).estimate(arguments) == Usage(input=1_010, output=20)
