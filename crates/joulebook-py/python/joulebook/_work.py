"""One piece of work, measured by a window or by a ticket of books, and told to whoever asked.

What a caller's own callable raises here is logged, and what it gives that is none of what it should
is not known: metering raises nothing into the work.
"""

from __future__ import annotations

from ._native import Books, Meter, Ticket
from ._wait import tell, until

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ._native import Energy, Receipt
    from .types import NodeLike


class Work:
    """Begun and ended once each; `cost` is what it came to.

    block: the code that runs meanwhile is in the window, and mark() finds it. labels: for a ticket.
    """

    def __init__(
        self,
        of: NodeLike | Books | None,
        *,
        to: Callable[..., object] | None = None,
        block: bool = False,
        joules_per_1k_hint: float | None = None,
        sync: Callable[[], object] | None = None,
        **labels: Any,
    ) -> None:
        self.cost: Energy | Receipt | None = None
        self._to = to
        self._block = block
        self.of: Meter | Ticket
        if isinstance(of, Books):
            # A client may be given anything for a model's name.
            given: dict[str, Any] = {
                name: label for name, label in labels.items() if isinstance(label, str)
            }
            self.of = of.open(**given)
        else:
            self.of = Meter.for_node(of, joules_per_1k_hint=joules_per_1k_hint, sync=sync)

    def begin(self) -> Work:
        """Opens the window; a ticket is open already."""
        if isinstance(self.of, Meter):
            if self._block:
                self.of.__enter__()
            else:
                self.of.start()
        return self

    async def abegin(self) -> Work:
        """The same; the first window of a card waits for its first reading, and holds no loop."""
        if isinstance(self.of, Meter):
            if self._block:
                await self.of.__aenter__()
            else:
                if not self.of._is_ready():
                    await until(self.of._ready_then)
                self.of.start()
        return self

    def end(
        self, tokens: object = None, error: BaseException | None = None, *told: object
    ) -> Energy | Receipt:
        """Ends it, and tells whoever asked: `told`, then the cost."""
        if self.cost is None:
            count = self._stop(tokens, error)
            of = self.of
            self._tell(of.result(count) if isinstance(of, Meter) else of.receipt(), told)
        assert self.cost is not None
        return self.cost

    async def aend(
        self, tokens: object = None, error: BaseException | None = None, *told: object
    ) -> Energy | Receipt:
        """The same, without holding an event loop: books answer from a thread of their own. Cancelled
        meanwhile, it tells what is known all the same, and then the cancellation goes on."""
        if self.cost is None:
            count = self._stop(tokens, error)
            of = self.of
            if isinstance(of, Meter):
                self._tell(of.result(count), told)
            else:
                await tell(lambda receipt: self._tell(receipt, told), of._settle_then, 0.0)
        assert self.cost is not None
        return self.cost

    def _stop(self, tokens: object, error: BaseException | None) -> int | None:
        count = counted(tokens)
        if isinstance(self.of, Meter):
            self.of.stop()
        else:
            if count is not None:
                self.of.used(completion_tokens=count)
            self.of.__exit__(None if error is None else type(error), error, None)
        return count

    def _tell(self, cost: Energy | Receipt, told: tuple[object, ...]) -> None:
        if self.cost is None:
            self.cost = cost
            if self._to is not None:
                quietly(self._to, *told, cost)


def counted(tokens: object) -> int | None:
    """A number of tokens, of whatever a caller gives for one; None where it is no such number."""
    if isinstance(tokens, int) and not isinstance(tokens, bool) and 0 <= tokens < 2**63:
        return tokens
    return None


def quietly(call: Callable[..., Any], *arguments: object) -> Any:
    """What a caller's callable returns; None, and a line in the log, where it raises."""
    try:
        return call(*arguments)
    except Exception:
        import logging

        logging.getLogger("joulebook").exception("%r was called for a measurement and failed", call)
        return None
