"""Traffic of several asynchronous clients of the Python peer on a shared tree of entities.

Prints, as JSON, what was admitted and kept, by entity and limit, in tokens, and how calls ended.
"""

import asyncio
import json
import random
import sys
from collections import Counter

from zae_limiter import Limit, RateLimiter, RateLimitExceeded, Repository

name, endpoint, settings = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
PARENT, CHILDREN, RESOURCE = settings["parent"], settings["children"], settings["resource"]


class Trouble(Exception):
    """What the caller's work ends with now and then."""


async def call(limiter, child, estimate, fails, used, admitted, ended):
    try:
        async with limiter.acquire(child, RESOURCE, consume={"rpm": 1, "tpm": estimate}) as lease:
            await lease.adjust(tpm=used - estimate)
            if fails:
                raise Trouble
    except RateLimitExceeded:
        ended["refused"] += 1
    except Trouble:
        ended["rolled back"] += 1
    else:
        ended["admitted"] += 1
        # The child's limits and its parent's are charged alike.
        for entity in [child, PARENT]:
            admitted[f"{entity} rpm"] += 1
            admitted[f"{entity} tpm"] += used


async def client(number, admitted, ended):
    draw = random.Random(settings["seed"] * 1000 + number)
    async with RateLimiter(repository=Repository(name, region="us-east-1", endpoint_url=endpoint)) as limiter:
        # Nobody else calls for this child, so that one call is rolled back and one admitted in any case.
        for fails in [True, False]:
            await call(limiter, settings["own"], 1, fails, 1, admitted, ended)
        for attempt in range(settings["calls"]):
            child, fails = draw.choice(CHILDREN), draw.random() < 0.2
            await call(limiter, child, draw.randint(1, 20), fails, draw.randint(0, 30), admitted, ended)
            if attempt % settings["change_every"] == settings["change_every"] - 1:
                child = draw.choice(CHILDREN)
                limits = [Limit(**limit) for limit in draw.choice(settings["configs"])]
                await limiter.set_limits(child, limits, resource=RESOURCE, principal="peer")
                ended["configured"] += 1


async def main():
    admitted, ended = Counter(), Counter()
    await asyncio.gather(*(client(number, admitted, ended) for number in range(settings["clients"])))
    print(json.dumps({"admitted": admitted, "ended": ended}))


asyncio.run(main())
