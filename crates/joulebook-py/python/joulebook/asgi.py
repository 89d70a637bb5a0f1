"""Joules on every answer of an ASGI application (Starlette, FastAPI, Litestar, Quart …).

    app.add_middleware(EnergyMiddleware, node=node)             # Starlette, FastAPI
    app = EnergyMiddleware(app, node=Books(node), to=log)       # any

Pure ASGI: nothing is imported, no stream is held back. While a request is answered its window is the
current one, so any code in it may `joulebook.mark("…")`; with Books it is a ticket. Either stands in
`scope["state"]["energy"]` (`request.state.energy` in Starlette). An answer whose body comes in one
piece gets the headers x-energy-joules and x-energy-method; one of books also x-energy-id, streams too.
"""

from __future__ import annotations

from ._native import Meter, Ticket
from ._work import Work, counted, quietly

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping
    from typing import Any

    from ._native import Books, Energy, Receipt
    from .types import NodeLike

    Scope = MutableMapping[str, Any]
    Message = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[Message]]
    Send = Callable[[Message], Awaitable[None]]
    App = Callable[[Scope, Receive, Send], Awaitable[None]]

__all__ = ["EnergyMiddleware"]


class EnergyMiddleware:
    """Measures each HTTP request of an application.

    node: a Node, any object with its attributes, or Books. to: called with the scope and the Energy,
    or the Receipt, of each request. headers: put joules on answers. tokens: says of the scope, when
    the request is over, how many tokens it produced; where it is left out, what the application has
    put in scope["state"]["energy_tokens"]. joules_per_1k_hint: what 1000 tokens cost by your own
    estimate, for what cannot be measured.
    """

    def __init__(
        self,
        app: App,
        node: NodeLike | Books | None = None,
        *,
        to: Callable[[Scope, Energy | Receipt], object] | None = None,
        headers: bool = True,
        tokens: Callable[[Scope], int | None] | None = None,
        joules_per_1k_hint: float | None = None,
    ) -> None:
        self.app = app
        self.node = node
        self.to = to
        self.headers = headers
        self.tokens = tokens
        self.hint = joules_per_1k_hint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        work = Work(
            self.node,
            to=self.to,
            block=True,
            joules_per_1k_hint=self.hint,
            route=scope.get("path"),
        )
        await work.abegin()
        state = scope.setdefault("state", {})
        state["energy"] = work.of
        answer = _Answer(work, send, lambda: self._count(scope)) if self.headers else None
        try:
            await self.app(scope, receive, answer or send)
        except BaseException as error:
            await work.aend(self._count(scope), error, scope)
            raise
        else:
            await work.aend(self._count(scope), None, scope)
        finally:
            if answer is not None:
                await answer.flush()

    def _count(self, scope: Scope) -> object:
        return quietly(self.tokens or _told, scope)


def _told(scope: Scope) -> object:
    """What the application has said of its tokens."""
    return scope.get("state", {}).get("energy_tokens")


class _Answer:
    """`send`, with headers: the start waits for the first piece of the body, which tells whether it is
    the only one."""

    def __init__(self, work: Work, send: Send, count: Callable[[], object]) -> None:
        self.work = work
        self.send = send
        self.count = count
        self.start: Message | None = None

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.start = message
            return
        await self.flush(message["type"] == "http.response.body" and not message.get("more_body"))
        await self.send(message)

    async def flush(self, whole: bool = False) -> None:
        """Sends the start, if it is still to be sent; with the joules where the answer is `whole`."""
        start, self.start = self.start, None
        if start is None:
            return
        of = self.work.of
        more: list[tuple[bytes, bytes]] = []
        if isinstance(of, Ticket) and of.id is not None:
            more.append((b"x-energy-id", str(of.id).encode()))
        if whole:
            if isinstance(of, Meter):
                energy = of.result(counted(self.count()))
                joules, method = energy.known_joules, energy.method
            else:
                receipt = await of.asettle(0.0)
                joules, method = receipt.joules, receipt.method
            if joules is not None:
                more.append((b"x-energy-joules", f"{joules:.6g}".encode()))
            more.append((b"x-energy-method", method.encode()))
        await self.send({**start, "headers": [*start.get("headers", ()), *more]})
