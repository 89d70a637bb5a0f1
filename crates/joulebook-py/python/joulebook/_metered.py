"""@metered: what each call of a function costs."""

from __future__ import annotations

import functools
import inspect
from contextvars import ContextVar

from ._native import Books, Node
from ._work import Work, quietly

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ._native import Energy, Receipt
    from .types import NodeLike


def metered(
    node: Any = None,
    *,
    tokens: int | Callable[[Any], int | None] | None = None,
    to: Callable[[Any], object] | None = None,
    joules_per_1k_hint: float | None = None,
    sync: Callable[[], object] | None = None,
) -> Any:
    """Measures each call of a function, coroutine function or (async) generator function.

        @metered(node, tokens=lambda answer: answer.usage.completion_tokens, to=costs.append)
        async def generate(prompt): ...

    node: a Node, any object with its attributes, or Books, whose tickets share the cards among calls
    at once; left out: card 0 of this machine above its stored idle floor. tokens: how many a call
    produced, or a callable that says so of what it returned (an async generator: of what it yielded
    last). to: called with the Energy, or the Receipt, of each call.

    `generate.energy()` is that of the last call that ended in the caller's context, or None. What the
    function returns or raises is untouched.
    """
    options = {"joules_per_1k_hint": joules_per_1k_hint, "sync": sync}
    if inspect.isroutine(node):
        return _decorated(node, Node(gpus=[0]), tokens, to, options)
    of = Node(gpus=[0]) if node is None else node
    return lambda function: _decorated(function, of, tokens, to, options)


def _decorated(
    function: Callable[..., Any],
    of: NodeLike | Books,
    tokens: int | Callable[[Any], int | None] | None,
    to: Callable[[Any], object] | None,
    options: dict[str, Any],
) -> Any:
    last: ContextVar[Energy | Receipt | None] = ContextVar("joulebook_last", default=None)

    def tell(cost: Energy | Receipt) -> None:
        last.set(cost)
        if to is not None:
            to(cost)

    def work(block: bool) -> Work:
        return Work(of, to=tell, block=block, **options)

    def count(result: Any) -> object:
        return quietly(tokens, result) if callable(tokens) else tokens

    def call(*arguments: Any, **named: Any) -> Any:
        of_call = work(block=True).begin()
        try:
            result = function(*arguments, **named)
        except BaseException as error:
            of_call.end(error=error)
            raise
        of_call.end(count(result))
        return result

    async def acall(*arguments: Any, **named: Any) -> Any:
        of_call = await work(block=True).abegin()
        try:
            result = await function(*arguments, **named)
        except BaseException as error:
            await of_call.aend(None, error)
            raise
        await of_call.aend(count(result))
        return result

    def generate(*arguments: Any, **named: Any) -> Any:
        of_call = work(block=False).begin()
        try:
            result = yield from function(*arguments, **named)
        except BaseException as error:
            of_call.end(error=error)
            raise
        of_call.end(count(result))
        return result

    async def agenerate(*arguments: Any, **named: Any) -> Any:
        of_call, yielded = await work(block=False).abegin(), None
        try:
            generator = function(*arguments, **named)
            step = generator.__anext__()
            # What `yield from` does, which there is not for these.
            while True:
                try:
                    yielded = await step
                except StopAsyncIteration:
                    break
                try:
                    sent = yield yielded
                except GeneratorExit:
                    await generator.aclose()
                    raise
                except BaseException as thrown:
                    step = generator.athrow(thrown)
                else:
                    step = generator.asend(sent)
        except BaseException as error:
            await of_call.aend(count(yielded), error)
            raise
        await of_call.aend(count(yielded))

    kinds: list[tuple[Callable[[Any], bool], Any]] = [
        (inspect.iscoroutinefunction, acall),
        (inspect.isasyncgenfunction, agenerate),
        (inspect.isgeneratorfunction, generate),
    ]
    wrapper: Any = next((wrap for is_one, wrap in kinds if is_one(function)), call)
    wrapper = functools.wraps(function)(wrapper)
    wrapper.energy = last.get
    return wrapper
