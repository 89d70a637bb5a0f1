"""Joules on the answers of an HTTP or OpenAI client, measured on the cards that serve it.

For a server whose cards are here, or behind an agent: what the cards drew while the answer came.

    client = httpx.Client(event_hooks=httpx_hooks(node))
    response = client.post(url, json=body)
    response.energy                                     # an Energy, once the body has been read

    client = with_energy(openai.OpenAI(base_url=url), node)
    answer = client.chat.completions.create(model="m", messages=messages)
    answer.energy["joules"]                             # plain data, so that model_dump() keeps it

With Books in the place of the node, calls at once share the cards, and it is a Receipt.
"""

from __future__ import annotations

import functools
import inspect

from ._native import Energy
from ._work import Work, counted, quietly

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from typing import Any, TypeVar

    from ._native import Books, Receipt
    from .types import NodeLike

    Client = TypeVar("Client")

__all__ = ["httpx_async_hooks", "httpx_hooks", "with_energy"]

#: Where a request carries its work from one hook to the other.
_WORK = "joulebook"


def httpx_hooks(
    node: NodeLike | Books | None, *, to: Callable[[Any], object] | None = None
) -> dict[str, list[Callable[..., Any]]]:
    """Event hooks for an httpx.Client: each response gets `energy` when its body has been read or it is
    closed; until then that is None. to: called with the Energy, or the Receipt, of each."""
    import httpx

    class Stream(httpx.SyncByteStream):
        def __init__(self, stream: Any, response: Any, work: Work) -> None:
            self._stream, self._response, self._work = stream, response, work

        def __iter__(self) -> Iterator[bytes]:
            yield from self._stream
            _put(self._response, self._work.end())

        def close(self) -> None:
            try:
                self._stream.close()
            finally:
                _put(self._response, self._work.end())

    def request(request: Any) -> None:
        request.extensions = {**request.extensions, _WORK: Work(node, to=to).begin()}

    def response(response: Any) -> None:
        _put(response, None)
        work = response.request.extensions.get(_WORK)
        if work is not None:
            response.stream = Stream(response.stream, response, work)

    return {"request": [request], "response": [response]}


def httpx_async_hooks(
    node: NodeLike | Books | None, *, to: Callable[[Any], object] | None = None
) -> dict[str, list[Callable[..., Any]]]:
    """httpx_hooks() for an httpx.AsyncClient."""
    import httpx

    class Stream(httpx.AsyncByteStream):
        def __init__(self, stream: Any, response: Any, work: Work) -> None:
            self._stream, self._response, self._work = stream, response, work

        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for piece in self._stream:
                yield piece
            _put(self._response, await self._work.aend())

        async def aclose(self) -> None:
            try:
                await self._stream.aclose()
            finally:
                _put(self._response, await self._work.aend())

    async def request(request: Any) -> None:
        work = await Work(node, to=to).abegin()
        request.extensions = {**request.extensions, _WORK: work}

    async def response(response: Any) -> None:
        _put(response, None)
        work = response.request.extensions.get(_WORK)
        if work is not None:
            response.stream = Stream(response.stream, response, work)

    return {"request": [request], "response": [response]}


#: The calls of an OpenAI client that a model answers.
_CALLS = ("chat.completions", "completions", "responses", "embeddings")


def with_energy(
    client: Client,
    node: NodeLike | Books | None,
    *,
    to: Callable[[Any], object] | None = None,
    joules_per_1k_hint: float | None = None,
) -> Client:
    """The same OpenAI (or AsyncOpenAI) client, whose answers carry `energy`.

    What its chat.completions, completions, responses and embeddings create gets the extended form of
    the Energy (or the Receipt's) as plain data; of a stream it is `stream.energy` once it has ended.
    Tokens are the answer's usage, in a stream where it was asked for. to: called with the Energy, or
    the Receipt, of each answer.
    """

    def work(named: dict[str, Any]) -> Work:
        hint = joules_per_1k_hint
        return Work(node, to=to, joules_per_1k_hint=hint, model=named.get("model"))

    for path in _CALLS:
        resource: Any = client
        for name in path.split("."):
            resource = getattr(resource, name, None)
        create = getattr(resource, "create", None)
        if create is None:
            continue
        is_async = inspect.iscoroutinefunction(inspect.unwrap(create))
        resource.create = (_acreate if is_async else _create)(create, work)
    return client


def _create(create: Any, begin: Callable[[dict[str, Any]], Work]) -> Any:
    @functools.wraps(create)
    def call(*arguments: Any, **named: Any) -> Any:
        work = begin(named).begin()
        try:
            answer = create(*arguments, **named)
        except BaseException as error:
            work.end(error=error)
            raise
        if named.get("stream"):
            return _Stream(answer, work)
        tokens = _tokens(answer)
        _put(answer, _plain(work.end(tokens), tokens))
        return answer

    return call


def _acreate(create: Any, begin: Callable[[dict[str, Any]], Work]) -> Any:
    @functools.wraps(create)
    async def call(*arguments: Any, **named: Any) -> Any:
        work = await begin(named).abegin()
        try:
            answer = await create(*arguments, **named)
        except BaseException as error:
            await work.aend(None, error)
            raise
        if named.get("stream"):
            return _AsyncStream(answer, work)
        tokens = _tokens(answer)
        _put(answer, _plain(await work.aend(tokens), tokens))
        return answer

    return call


class _Wrapped:
    """A stream of the client's, with `energy` once it has ended."""

    def __init__(self, stream: Any, work: Work) -> None:
        self._stream, self._work = stream, work
        self._tokens: int | None = None
        self.energy: dict[str, Any] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _see(self, event: Any) -> Any:
        tokens = _tokens(event)
        # The usages of a stream are cumulative.
        self._tokens = self._tokens if tokens is None else tokens
        return event


class _Stream(_Wrapped):
    def __iter__(self) -> Iterator[Any]:
        error: BaseException | None = None
        try:
            for event in self._stream:
                yield self._see(event)
        except BaseException as raised:
            error = raised
            raise
        finally:
            self._end(error)

    def __next__(self) -> Any:
        try:
            return self._see(next(self._stream))
        except BaseException as error:
            self._end(None if isinstance(error, StopIteration) else error)
            raise

    def __enter__(self) -> _Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the stream, and its window."""
        try:
            self._stream.close()
        finally:
            self._end(None)

    def _end(self, error: BaseException | None) -> None:
        self.energy = _plain(self._work.end(self._tokens, error), self._tokens)


class _AsyncStream(_Wrapped):
    async def __aiter__(self) -> AsyncIterator[Any]:
        error: BaseException | None = None
        try:
            async for event in self._stream:
                yield self._see(event)
        except BaseException as raised:
            error = raised
            raise
        finally:
            await self._end(error)

    async def __anext__(self) -> Any:
        try:
            return self._see(await self._stream.__anext__())
        except BaseException as error:
            await self._end(None if isinstance(error, StopAsyncIteration) else error)
            raise

    async def __aenter__(self) -> _AsyncStream:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the stream, and its window."""
        try:
            await self._stream.close()
        finally:
            await self._end(None)

    async def _end(self, error: BaseException | None) -> None:
        self.energy = _plain(await self._work.aend(self._tokens, error), self._tokens)


def _put(answer: Any, energy: object) -> None:
    """Puts it on an object of the client's, where that can be."""
    quietly(setattr, answer, "energy", energy)


def _tokens(answer: Any) -> int | None:
    """Tokens of an answer, by its usage; of a `responses` event, by its response's."""
    tokens: int | None = quietly(_used, answer)
    return tokens


def _used(answer: Any) -> int | None:
    usage = getattr(answer, "usage", None) or getattr(
        getattr(answer, "response", None), "usage", None
    )
    for name in ("completion_tokens", "output_tokens"):
        tokens = counted(getattr(usage, name, None))
        if tokens is not None:
            return tokens
    return None


def _plain(cost: Energy | Receipt, tokens: int | None) -> dict[str, Any]:
    if isinstance(cost, Energy):
        return cost.as_dict(tokens or 0, extended=True)
    return cost.as_dict()
