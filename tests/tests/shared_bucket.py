"""Acquires from a bucket with the Python peer, several threads at once, and prints how many were admitted."""

import sys
from concurrent.futures import ThreadPoolExecutor

from zae_limiter import RateLimitExceeded, SyncRateLimiter, SyncRepository

name, endpoint, threads, attempts = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])


def caller(_):
    limiter = SyncRateLimiter(repository=SyncRepository(name, region="us-east-1", endpoint_url=endpoint))
    admitted = 0
    for _ in range(attempts):
        try:
            with limiter.acquire("user-1", "gpt-4", consume={"calls": 1}):
                admitted += 1
        except RateLimitExceeded:
            pass
    return admitted


with ThreadPoolExecutor(threads) as pool:
    print(sum(pool.map(caller, range(threads))))
