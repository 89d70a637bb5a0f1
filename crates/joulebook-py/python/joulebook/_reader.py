"""Reads a backend that is written in Python, for one window.

A thread of its own does it, or, under `async with`, a task on the caller's loop where the backend
reads with coroutines of its own. Edges of a counter's window are waited for, but never long: a backend
that hangs costs the measurement and not the work. Nothing a backend raises gets out of here. However a
window ends or fails to open (cancelled, interrupted), `_stop_reading` is called, and nothing reads on.
"""

from __future__ import annotations

import threading

from ._native import Readings
from ._wait import in_thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable
    from typing import Any

#: How long an edge's reading is waited for, s.
PATIENCE_S = 0.25
#: The same for a mark, which has to be made where the work runs.
MARK_PATIENCE_S = 0.05


class Reader:
    """The readings of one window. Made anew for each, so a fork or a loop's end leaves nothing over."""

    def __init__(self, backend: Any, interval_s: float) -> None:
        self.backend = backend
        self.counter = getattr(backend, "kind", "sampler") == "counter"
        self.interval_s = max(float(interval_s), 0.001)
        self.readings = Readings(self.counter, self.interval_s)
        self._read: Callable[[], float | None] = getattr(
            backend, "read_joules" if self.counter else "read_watts", _nothing
        )
        self._wanted = threading.Condition()
        self._asked = 0
        self._answered = 0
        self._over = False
        self._thread: threading.Thread | None = None
        self._task: asyncio.Task[None] | None = None
        #: The thread of the last mark that was made while a task reads.
        self._marking: threading.Thread | None = None

    # --- with a thread ------------------------------------------------------

    def open(self) -> None:
        """Starts to read. A counter is read before the window opens. Whoever calls it stops it where it
        raises: an interrupt may come at any line."""
        # Asked before the thread starts, so that its first reading answers.
        asked = self._ask() if self.counter else 0
        self._start()
        self._wait(asked, PATIENCE_S)
        self.readings.open()

    def mark(self, name: str) -> None:
        """Makes a mark, with a counter's reading."""
        at_ns = Readings.now_ns()
        if self.counter and self._thread is not None:
            self._wait(self._ask(), MARK_PATIENCE_S)
        elif self.counter:
            self._read_apart(MARK_PATIENCE_S)
        self.readings.mark(name, at_ns)

    def close(self) -> None:
        """Reads once more, and ends."""
        try:
            self._wait(self._ask(), PATIENCE_S)
        finally:
            self._stop_reading()
            self._join()
            _quietly(getattr(self.backend, "close", _nothing))

    def _stop_reading(self) -> None:
        """Tells whatever reads that it is over, and waits for nothing."""
        with self._wanted:
            self._over = True
            self._wanted.notify_all()
        task = self._task
        if task is not None:
            # A window that a coroutine opened may be closed in another thread, or after its loop.
            _quietly(lambda: task.get_loop().call_soon_threadsafe(task.cancel))

    def _join(self) -> None:
        """Waits for the end of the thread, where its backend does not hang."""
        if self._thread is not None:
            self._thread.join(MARK_PATIENCE_S)

    def _start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="joulebook-backend", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:  # the interpreter goes down, or there are no more threads
            self._thread = None

    def _ask(self) -> int:
        with self._wanted:
            self._asked += 1
            self._wanted.notify_all()
            return self._asked

    def _wait(self, number: int, patience_s: float) -> None:
        if self._thread is None:
            self.readings.late()
            return
        with self._wanted:
            self._wanted.wait_for(lambda: self._over or self._answered >= number, patience_s)
            if self._answered < number:
                self.readings.late()

    def _run(self) -> None:
        while True:
            with self._wanted:
                asked = self._asked
            self._read_here(self._read)
            with self._wanted:
                # What was asked while it was read is read for anew.
                self._answered = asked
                self._wanted.notify_all()
                self._wanted.wait_for(lambda: self._over or self._asked > asked, self.interval_s)
                if self._over:
                    return

    def _read_here(self, read: Callable[[], float | None]) -> None:
        begin_ns = Readings.now_ns()
        self.readings.add(begin_ns, _number(_quietly(read)))

    def _read_apart(self, patience_s: float) -> None:
        """Reads a counter once, for an event loop's thread: where it takes longer, it is let go."""
        read = getattr(self.backend, "read_joules", _nothing)
        values: list[object] = []
        thread = threading.Thread(
            target=lambda: values.append(_quietly(read)), name="joulebook-mark", daemon=True
        )
        begin_ns = Readings.now_ns()
        # One that hangs is not asked again: a thread for each mark would pile up.
        if self._marking is None or not self._marking.is_alive():
            try:
                thread.start()
            except RuntimeError:  # the interpreter goes down, or there are no more threads
                pass
            else:
                self._marking = thread
                thread.join(patience_s)
        if values:
            self.readings.add(begin_ns, _number(values[0]))
        else:
            self.readings.late()

    # --- with a task --------------------------------------------------------

    async def aopen(self) -> None:
        """The same from a coroutine."""
        read = self._coroutine()
        if read is None:
            asked = self._ask() if self.counter else 0
            self._start()
            if self.counter:
                await in_thread(self._wait, asked, PATIENCE_S)
            self.readings.open()
            return
        import asyncio

        if self.counter:
            await self._aread(read)
        self.readings.open()
        self._task = asyncio.get_running_loop().create_task(self._arun(read))

    async def aclose(self) -> None:
        """The same from a coroutine."""
        read = self._coroutine()
        try:
            if self._task is None or read is None:
                await in_thread(self._wait, self._ask(), PATIENCE_S)
            else:
                self._task.cancel()
                await self._aread(read)
        finally:
            self._stop_reading()
            if self._thread is not None:
                await in_thread(self._join)
            await self._release()

    async def _release(self) -> None:
        if hasattr(self.backend, "aclose"):
            await _aquietly(self.backend.aclose)
        elif hasattr(self.backend, "close"):
            await in_thread(_quietly, self.backend.close)

    def _coroutine(self) -> Callable[[], Awaitable[float | None]] | None:
        """The backend's own way of reading with coroutines, under asyncio."""
        from . import backends
        from ._wait import loop_library

        name = "aread_joules" if self.counter else "aread_watts"
        own = getattr(self.backend, name, None)
        inherited = getattr(own, "__func__", None) is getattr(backends.Backend, name)
        return None if own is None or inherited or loop_library() != "asyncio" else own

    async def _arun(self, read: Callable[[], Awaitable[float | None]]) -> None:
        import asyncio

        while not self._over:
            if not self.counter:
                await self._aread(read)
            await asyncio.sleep(self.interval_s)
            if self.counter:
                await self._aread(read)

    async def _aread(self, read: Callable[[], Awaitable[float | None]]) -> None:
        import asyncio

        begin_ns = Readings.now_ns()
        try:
            # Not wait_for(), in which a cancellation can be lost on Python 3.11.
            async with asyncio.timeout(max(PATIENCE_S, self.interval_s)):
                value = await read()
        except TimeoutError:
            self.readings.late()
        except Exception:
            self.readings.add(begin_ns, None)
        else:
            self.readings.add(begin_ns, _number(value))


async def _aquietly(call: Callable[[], Awaitable[object]]) -> None:
    try:
        await call()
    except Exception:
        pass


def _quietly(call: Callable[[], object]) -> object:
    try:
        return call()
    except Exception:
        return None


def _number(value: Any) -> float | None:
    try:
        return None if value is None else float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _nothing() -> None:
    return None
