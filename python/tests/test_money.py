"""Prices, estimates and usage."""

from __future__ import annotations

import pytest
from zae_limiter_rs import (
    Estimate,
    Limit,
    Prices,
    PricesNotFoundError,
    RateLimiter,
    RateLimitExceeded,
    SyncRateLimiter,
    SyncRepository,
    Usage,
    ValidationError,
    dollars,
    micro_dollars,
)

TPM = Limit.custom("tpm", 200_000, 1, 360_000)
USD = Limit.custom("usd", micro_dollars("$10"), 1, 360_000)
PRICES = Prices(input="$2.50", output="$10", cached_input="$1.25", max_output=16_384)


async def priced(limiter: RateLimiter) -> None:
    await limiter.set_resource_defaults("gpt-4o", [TPM, USD])
    await limiter.set_prices("gpt-4o", PRICES)


async def test_an_estimate_is_taken_and_corrected_to_the_usage(limiter: RateLimiter) -> None:
    await priced(limiter)
    call = limiter.acquire("user-1", "gpt-4o", {}, estimate=Estimate(2_000, max_output=500))
    async with call as lease:
        assert lease.consumed == {"tpm": 2_500, "usd": 10_000}
        await lease.commit_usage(Usage(input=2_000, output=120))
        with pytest.raises(RuntimeError, match="no longer active"):
            await lease.adjust(tpm=1)
    assert await limiter.available("user-1", "gpt-4o") == {"tpm": 197_880, "usd": 10_000_000 - 6_200}


async def test_each_part_of_a_stream_replaces_the_usage(limiter: RateLimiter) -> None:
    await priced(limiter)
    async with limiter.acquire("user-1", "gpt-4o", {"tpm": 500}) as lease:
        for output in (40, 95, 180):
            await lease.adjust_to_usage(Usage(input=200, output=output, cached_input=1_024))
        assert lease.consumed == {"tpm": 1_404, "usd": 500 + 1_800 + 1_280}
    assert await limiter.available("user-1", "gpt-4o") == {"tpm": 198_596, "usd": 9_996_420}


async def test_an_exception_after_the_commit_gives_nothing_back(limiter: RateLimiter) -> None:
    await priced(limiter)
    with pytest.raises(ZeroDivisionError):
        async with limiter.acquire("user-1", "gpt-4o", {"tpm": 500}) as lease:
            await lease.commit_usage(Usage(input=100))
            1 / 0  # noqa: B018
    assert await limiter.available("user-1", "gpt-4o") == {"tpm": 199_900, "usd": 9_999_750}


async def test_an_estimate_that_the_budget_does_not_have_is_refused(limiter: RateLimiter) -> None:
    await priced(limiter)
    with pytest.raises(RateLimitExceeded) as refused:
        async with limiter.acquire("user-1", "gpt-4o", {}, estimate=Estimate(190_000, max_output=20_000)):
            pass
    # The model writes no more than 16,384 tokens.
    assert [(status.limit_name, status.requested) for status in refused.value.violations] == [("tpm", 206_384)]
    assert await limiter.available("user-1", "gpt-4o") == {"tpm": 200_000, "usd": 10_000_000}


async def test_without_prices_nothing_is_taken_and_a_commit_keeps_what_was(limiter: RateLimiter) -> None:
    await limiter.set_resource_defaults("free", [TPM])
    with pytest.raises(PricesNotFoundError) as missing:
        async with limiter.acquire("user-1", "free", {}, estimate=Estimate(10)):
            pass
    assert missing.value.resource == "free"
    async with limiter.acquire("user-1", "free", {"tpm": 500}) as lease:
        with pytest.raises(PricesNotFoundError):
            await lease.adjust_to_usage(Usage(input=10))
        with pytest.raises(PricesNotFoundError):
            await lease.commit_usage(Usage(input=10))
    assert await limiter.available("user-1", "free") == {"tpm": 199_500}


async def test_prices_are_stored_beside_the_limits(limiter: RateLimiter) -> None:
    await limiter.set_resource_defaults("gpt-4o", [TPM])
    system = Prices(per_call="$0.01", money_limit="spend", token_limits=())
    await limiter.set_prices(None, system, principal="alice")
    assert await limiter.get_prices("gpt-4o") is None
    assert await limiter.resolve_prices("gpt-4o") == system
    await limiter.set_prices("gpt-4o", PRICES)
    await limiter.set_resource_defaults("gpt-4o", [TPM, USD])
    assert await limiter.get_prices("gpt-4o") == await limiter.resolve_prices("gpt-4o") == PRICES
    assert await limiter.get_prices(None) == system
    assert await limiter.delete_prices("gpt-4o")
    assert not await limiter.delete_prices("gpt-4o")
    assert await limiter.get_resource_defaults("gpt-4o") == [TPM, USD]
    events = await limiter.get_audit_events("$SYSTEM")
    assert [event.principal for event in events] == ["alice"]


def test_the_same_without_asyncio() -> None:
    with SyncRateLimiter(repository=SyncRepository.embedded(), default_limits=[TPM, USD]) as limiter:
        limiter.set_prices("gpt-4o", PRICES)
        with limiter.acquire("user-1", "gpt-4o", {}, estimate=Estimate(2_000, max_output=500)) as lease:
            lease.commit_usage(Usage(input=2_000, output=120))
        assert limiter.available("user-1", "gpt-4o") == {"tpm": 197_880, "usd": 9_993_800}


def test_costs_are_whole_micro_dollars_rounded_up_once() -> None:
    assert PRICES.cost(Usage(cached_input=1)) == 2
    assert PRICES.cost(Usage(input=1, cached_input=1)) == 4
    assert PRICES.amounts(Usage(input=1_000, output=300)) == {"tpm": 1_300, "usd": 5_500}
    assert Prices(per_call="$0.25").cost(Usage(calls=3)) == 750_000
    assert PRICES.estimate(Estimate(10)) == Usage(input=10, output=16_384)
    assert PRICES.estimate(Estimate(10, max_output=7)) == Usage(input=10, output=7)


def test_money_is_text_and_exact() -> None:
    assert micro_dollars("$12.50") == micro_dollars("12.5 usd") == 12_500_000
    assert dollars(12_500_000) == "$12.50"
    assert dollars(-1) == "-$0.000001"
    assert Prices(input="2.5 usd") == Prices(input="$2.50")
    assert Prices.from_dict(PRICES.to_dict()) == PRICES


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: micro_dollars("12.50"), "money"),
        (lambda: micro_dollars("$0.0000001"), "money"),
        (lambda: Prices(output="10"), "output"),
        (lambda: Prices(), "input"),
        (lambda: Prices(input="$1", max_output=-1), "prices.max_output"),
        (lambda: Prices(input="$1", money_limit="tpm"), "token_limits"),
        (lambda: Prices(input="$1", token_limits="tpm"), "token_limits"),  # type: ignore[arg-type]
        (lambda: Usage(input=-1), "usage.input"),
        (lambda: Usage(output=1.5), "usage.output"),  # type: ignore[arg-type]
        (lambda: Estimate(10, max_output=-1), "estimate.max_output"),
        (lambda: Prices(input="$1000000").cost(Usage(input=10**12)), "usage"),
    ],
)
def test_what_breaks_a_rule_names_its_field(make: object, field: str) -> None:
    assert callable(make)
    with pytest.raises(ValidationError) as invalid:
        make()
    assert invalid.value.field == field
