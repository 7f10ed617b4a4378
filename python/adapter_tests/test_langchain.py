"""Agents and models of LangChain, limited."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest
from conftest import left, left_now
from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from model_server import FAIL, INPUT, OUTPUT
from openai import BadRequestError
from zae_limiter_rs import RateLimitExceeded
from zae_limiter_rs.adapters import ModelLimits
from zae_limiter_rs.adapters.langchain import RateLimitMiddleware, RequestRateLimiter

USED = INPUT + OUTPUT


# Models with the same settings share connections, even those of an event loop that is over.
_TIMEOUTS = count(600)


def model(url: str, **options: Any) -> ChatOpenAI:
    options |= {"timeout": next(_TIMEOUTS), "max_retries": 0}
    return ChatOpenAI(model="small", base_url=f"{url}/v1", api_key="key", **options)


def saying(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


async def test_calls_of_an_agent_are_settled(model_url: str, limits: ModelLimits) -> None:
    agent = create_agent(model(model_url), tools=[], middleware=[RateLimitMiddleware(limits)])
    result = await agent.ainvoke(saying("hello"))
    assert result["messages"][-1].content == '{"text": "Hello"}'
    assert await left(limits) == (9, 10_000 - USED)
    with pytest.raises(BadRequestError):
        await agent.ainvoke(saying(FAIL))
    assert await left(limits) == (9, 10_000 - USED)


async def test_streams_of_an_agent_are_settled(model_url: str, limits: ModelLimits) -> None:
    agent = create_agent(model(model_url, stream_usage=True), tools=[], middleware=[RateLimitMiddleware(limits)])
    parts = [part async for part in agent.astream(saying("hello"), stream_mode="messages")]
    assert "".join(message.content for message, _ in parts) == "Hello world"
    assert await left(limits) == (9, 10_000 - USED)


def test_an_agent_without_asyncio(model_url: str, sync_limits: ModelLimits) -> None:
    agent = create_agent(model(model_url, max_tokens=20_000), tools=[], middleware=[RateLimitMiddleware(sync_limits)])
    with pytest.raises(RateLimitExceeded):
        agent.invoke(saying("hello"))
    agent = create_agent(model(model_url), tools=[], middleware=[RateLimitMiddleware(sync_limits)])
    agent.invoke(saying("hello"))
    assert left_now(sync_limits) == (9, 10_000 - USED)


async def test_a_rate_limiter_of_a_model_takes_requests(model_url: str, limits: ModelLimits) -> None:
    limiter = RequestRateLimiter(limits.limiter, "user-1", "small")
    await model(model_url, rate_limiter=limiter).ainvoke("hello")
    assert await left(limits) == (9, 10_000)
    for _ in range(9):
        assert await limiter.aacquire(blocking=False)
    assert not await limiter.aacquire(blocking=False)


def test_a_rate_limiter_without_asyncio(model_url: str, sync_limits: ModelLimits) -> None:
    limiter = RequestRateLimiter(sync_limits.limiter, "user-1", "small")
    model(model_url, rate_limiter=limiter).invoke("hello")
    assert left_now(sync_limits) == (9, 10_000)
