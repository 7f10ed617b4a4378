"""Workers of gunicorn, on one table."""

from __future__ import annotations

import http.client
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from conftest import PATIENTLY
from endpoint import moto_server
from zae_limiter_rs import SyncRepository

GUNICORN = """
import os
from zae_limiter_rs import Limit, RateLimitExceeded, SyncRateLimiter, SyncRepository

name, region, endpoint = os.environ["TABLE"].split()
repository = SyncRepository(name, region, endpoint)
limiter = SyncRateLimiter(repository=repository, default_limits=[Limit.custom("rph", 10, 1, 360_000)], time_budget=600)
if "USE_BEFORE_THE_FORK" in os.environ:
    assert limiter.available("user-1", "gpt-4") == {"rph": 10}

def application(environment, respond):
    try:
        with limiter.acquire("user-1", "gpt-4", {"rph": 1}):
            respond("200 OK", [])
    except RateLimitExceeded:
        respond("429 Too Many Requests", [])
    return [str(os.getpid()).encode()]
"""


@pytest.mark.parametrize("preload", [["--preload"], []])
def test_workers_of_gunicorn_together_get_exactly_the_limit(
    preload: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("AWS_ACCESS_KEY_ID", "test"), ("AWS_SECRET_ACCESS_KEY", "test"), ("AWS_REGION", "us-east-1")):
        monkeypatch.setenv(name, value)
    with moto_server() as url:
        # What moto stores outlives its server.
        table = ("preloaded" if preload else "loaded", "us-east-1", url)
        (tmp_path / "program.py").write_text(GUNICORN)
        SyncRepository(*table).create_table()
        environment = {"TABLE": " ".join(table)} | ({"USE_BEFORE_THE_FORK": "1"} if preload else {})
        options = [*preload, "--workers", "2", "--bind", "127.0.0.1:0", "--timeout", "600", "--no-control-socket"]
        program = subprocess.Popen(
            [sys.executable, "-m", "gunicorn", *options, "program:application"],
            cwd=tmp_path, env=os.environ | environment, stderr=subprocess.PIPE, text=True,
        )
        assert program.stderr is not None
        try:
            log: list[str] = []
            while not (log and "Listening at" in log[-1]):
                log.append(program.stderr.readline())
                assert log[-1], "".join(log)
            port = int(log[-1].split("127.0.0.1:")[1].split()[0].rstrip(")"))

            def ask(_: int) -> int:
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENTLY)
                connection.request("GET", "/")
                return connection.getresponse().status

            with ThreadPoolExecutor(4) as threads:
                assert sorted(threads.map(ask, range(16))) == [200] * 10 + [429] * 6
        finally:
            program.terminate()
            print(*log, program.communicate()[1])
        assert program.returncode == 0
