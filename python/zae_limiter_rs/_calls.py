"""How a call of the native part is carried out: awaited, or waited for."""

from __future__ import annotations

import asyncio
import atexit
import inspect
from typing import Any

from . import _core

# No thread may call into Python once the interpreter is gone.
atexit.register(_core.stop_runtime)


async def run(call: _core.Call) -> Any:
    """Awaits the call. Cancelling the task cancels it."""
    try:
        return await call
    except (asyncio.CancelledError, GeneratorExit):
        call.abandon()
        raise


def run_blocking(call: _core.Call) -> Any:
    """Blocks until the call is done. Other threads run meanwhile, and Ctrl-C interrupts it."""
    return call.wait()


async def resolve(value: Any) -> Any:
    """A value that a client may let its caller await."""
    return await value if inspect.isawaitable(value) else value


def resolve_blocking(value: Any) -> Any:
    """A value of a client without asyncio."""
    return value
