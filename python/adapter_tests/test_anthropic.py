"""The client of Anthropic, limited."""

from __future__ import annotations

from typing import Any

import anthropic
import pytest
from conftest import left, left_now
from model_server import BREAK, FAIL, INPUT, OUTPUT
from zae_limiter_rs.adapters import ModelLimits
from zae_limiter_rs.adapters.anthropic import limit_anthropic

# With what is read from the cache and written to it.
USED = INPUT + OUTPUT + 8
CALL: Any = {"model": "small", "max_tokens": 90, "messages": [{"role": "user", "content": "x" * 40}]}


def saying(text: str) -> Any:
    return {**CALL, "messages": [{"role": "user", "content": text.ljust(40)}]}


@pytest.fixture
def client(model_url: str, limits: ModelLimits) -> anthropic.AsyncAnthropic:
    return limit_anthropic(anthropic.AsyncAnthropic(base_url=model_url, api_key="key", max_retries=0), limits)


async def test_the_usage_replaces_the_estimate(client: anthropic.AsyncAnthropic, limits: ModelLimits) -> None:
    message = await client.messages.create(**CALL)
    assert message.content[0].text == "Hello"
    assert await left(limits) == (9, 10_000 - USED)
    await client.with_options(timeout=60).messages.create(**CALL)
    assert await left(limits) == (8, 10_000 - 2 * USED)


async def test_the_beta_api_is_limited_too(client: anthropic.AsyncAnthropic, limits: ModelLimits) -> None:
    await client.beta.messages.create(**CALL)
    assert await left(limits) == (9, 10_000 - USED)
    async with client.beta.messages.stream(**CALL) as stream:
        assert "".join([text async for text in stream.text_stream]) == "Hello"
    assert await left(limits) == (8, 10_000 - 2 * USED)


async def test_an_error_costs_nothing(client: anthropic.AsyncAnthropic, limits: ModelLimits) -> None:
    with pytest.raises(anthropic.BadRequestError):
        await client.messages.create(**saying(FAIL))
    with pytest.raises(anthropic.BadRequestError):
        async with client.messages.stream(**saying(FAIL)):
            pytest.fail("it was sent")
    assert await left(limits) == (10, 10_000)


async def test_streams_are_settled_at_their_end(client: anthropic.AsyncAnthropic, limits: ModelLimits) -> None:
    stream = await client.messages.create(**CALL, stream=True)
    assert await left(limits) == (9, 9_900)
    assert [event.type async for event in stream][-1] == "message_stop"
    assert await left(limits) == (9, 10_000 - USED)
    async with client.messages.stream(**CALL) as helper:
        assert "".join([text async for text in helper.text_stream]) == "Hello"
    assert await left(limits) == (8, 10_000 - 2 * USED)


async def test_a_stream_that_breaks_off_costs_the_estimate(client: anthropic.AsyncAnthropic, limits: ModelLimits) -> None:
    with pytest.raises(Exception, match="closed|incomplete"):
        async for _ in await client.messages.create(**saying(BREAK), stream=True):
            pass
    assert await left(limits) == (9, 9_900)
    with pytest.raises(Exception, match="closed|incomplete"):
        async with client.messages.stream(**saying(BREAK)) as helper:
            await helper.until_done()
    assert await left(limits) == (8, 9_800)
    async with client.messages.stream(**CALL):
        pass
    assert await left(limits) == (7, 9_700)


def test_the_same_without_asyncio(model_url: str, sync_limits: ModelLimits) -> None:
    client = limit_anthropic(anthropic.Anthropic(base_url=model_url, api_key="key", max_retries=0), sync_limits)
    client.messages.create(**CALL)
    list(client.messages.create(**CALL, stream=True))
    with client.messages.stream(**CALL) as stream:
        assert stream.get_final_text() == "Hello"
    assert left_now(sync_limits) == (7, 10_000 - 3 * USED)
