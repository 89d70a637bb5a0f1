"""Coroutines that wait for the native side without holding an event loop.

Works under asyncio (uvloop too) and trio. The native side calls back from a thread of its own, once;
what it calls only hands the value to the loop.
"""

from __future__ import annotations

import builtins
import sys

# Not from `typing`, which takes longer to import than all of this package.
TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable
    from contextlib import AbstractContextManager
    from typing import Any, TypeVar

    from ._native import Meter
    from ._reader import Reader

    T = TypeVar("T")


def loop_library() -> str | None:
    """The library whose event loop runs in this thread: "asyncio", "trio", or none."""
    asyncio: Any = sys.modules.get("asyncio")
    if asyncio is not None and asyncio._get_running_loop() is not None:
        return "asyncio"
    trio: Any = sys.modules.get("trio")
    if trio is not None and trio.lowlevel.in_trio_run():
        return "trio"
    return None


def may_wait() -> bool:
    """Waiting in this thread holds up nobody. A notebook's cell holds its loop in any case."""
    return loop_library() is None or hasattr(builtins, "__IPYTHON__")


async def until(start: Callable[..., object], *arguments: object) -> Any:
    """What start(*arguments, then) hands to `then`."""
    if loop_library() == "trio":
        return await _until_trio(start, arguments)
    return await _future(start, arguments)


async def tell(
    listener: Callable[[Any], object], start: Callable[..., object], *arguments: object
) -> None:
    """Calls the listener with what start(*arguments, then) hands to `then`, even where the caller is
    cancelled meanwhile: the cancellation goes on after that. For what comes in a moment."""
    if loop_library() == "trio":
        import trio

        # The caller's next checkpoint raises.
        with trio.CancelScope(shield=True):
            listener(await _until_trio(start, arguments))
        return
    import asyncio

    # A future and no task, so that a loop which cancels all its tasks at its end leaves it alone.
    future = _future(start, arguments)
    cancelled: asyncio.CancelledError | None = None
    with _shield_of_anyio():
        while not future.done():
            try:
                await asyncio.wait([future])
            except asyncio.CancelledError as error:
                cancelled = error
    listener(future.result())
    if cancelled is not None:
        raise cancelled


def _shield_of_anyio() -> AbstractContextManager[object]:
    """Keeps anyio, where the program has it, from cancelling anew at every turn of the loop."""
    from contextlib import nullcontext

    scope: Any = getattr(sys.modules.get("anyio"), "CancelScope", None)
    return nullcontext() if scope is None else scope(shield=True)


def _future(start: Callable[..., object], arguments: tuple[object, ...]) -> asyncio.Future[Any]:
    import asyncio

    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()

    def set_result(value: object) -> None:
        if not future.done():
            future.set_result(value)

    # A loop that is closed by then refuses, and the native side leaves it at that.
    start(*arguments, lambda value: loop.call_soon_threadsafe(set_result, value))
    return future


async def _until_trio(start: Callable[..., object], arguments: tuple[object, ...]) -> Any:
    import trio

    token = trio.lowlevel.current_trio_token()
    event = trio.Event()
    values: list[object] = []

    def set_value(value: object) -> None:
        values.append(value)
        event.set()

    start(*arguments, lambda value: token.run_sync_soon(set_value, value))
    await event.wait()
    return values[0]


async def within(timeout_s: float, awaited: Awaitable[T]) -> T | None:
    """What is awaited, or None when it does not come in time."""
    if loop_library() == "trio":
        import trio

        with trio.move_on_after(timeout_s):
            return await awaited
        return None
    import asyncio

    try:
        return await asyncio.wait_for(awaited, timeout_s)
    except TimeoutError:
        return None


async def in_thread(call: Callable[..., T], *arguments: Any) -> T:
    """What a call that may block returns, made in a thread."""
    if loop_library() == "trio":
        import trio

        return await trio.to_thread.run_sync(call, *arguments)
    import asyncio

    return await asyncio.get_running_loop().run_in_executor(None, call, *arguments)


async def enter(meter: Meter, driver: Reader | None) -> Meter:
    """Opens a window that has to wait: for its card's first reading, or for Python's backend."""
    await until(meter._ready_then)
    if driver is None:
        meter._open(None)
        return meter
    try:
        await driver.aopen()
        meter._open(driver)
    except BaseException:
        driver._stop_reading()
        raise
    return meter


async def leave(meter: Meter, driver: Reader) -> None:
    """Closes a window that Python's backend is read for."""
    try:
        close_ns = meter._stop()
        try:
            await driver.aclose()
        finally:
            meter._close(close_ns)
    finally:
        # Also where the caller's sync is interrupted.
        driver._stop_reading()
