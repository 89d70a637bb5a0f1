"""@metered."""

import asyncio
import inspect
import time

import pytest

import joulebook
from joulebook import Books, Receipt, metered

from .conftest import near


def test_functions_of_all_kinds(node, draw):
    told = []

    @metered(node, tokens=len, to=told.append)
    def plain(text):
        """Its own words."""
        time.sleep(0.2)
        joulebook.mark("thought")
        return text

    @metered(node, tokens=3, to=told.append)
    async def coroutine():
        await asyncio.sleep(0.2)
        joulebook.mark("thought")
        return "done"

    @metered(node, to=told.append)
    def generator():
        for number in range(4):
            time.sleep(0.05)
            assert joulebook.current() is None
            yield number
        return "returned"

    @metered(node, to=told.append)
    async def agenerator():
        for number in range(4):
            await asyncio.sleep(0.05)
            yield number

    def drained():
        returned = yield from generator()
        assert returned == "returned"

    async def work():
        assert await coroutine() == "done"
        assert near(coroutine.energy(), 300)
        assert [number async for number in agenerator()] == [0, 1, 2, 3]
        assert near(agenerator.energy(), 300)

    draw(350.0)
    assert plain("text") == "text" and plain.__doc__ == "Its own words." and plain.__name__ == "plain"
    assert near(plain.energy(), 300) and list(plain.energy().stages) == ["thought"]
    asyncio.run(work())
    assert list(drained()) == [0, 1, 2, 3] and near(generator.energy(), 300)
    assert len(told) == 4 and list(told[1].stages) == ["thought"]
    assert inspect.iscoroutinefunction(coroutine) and inspect.isasyncgenfunction(agenerator)


def test_nothing_of_it_gets_into_the_work(node, caplog):
    @metered(node, tokens=lambda _: 1 / 0, to=lambda _: 1 / 0)
    def fine():
        return "fine"

    @metered(node)
    def raising():
        raise KeyError("of the work")

    assert fine() == "fine" and caplog.text.count("ZeroDivisionError") == 2
    with pytest.raises(KeyError, match="of the work"):
        raising()
    assert raising.energy().seconds > 0 and joulebook.current() is None


def test_a_generator_that_is_left(node):
    @metered(node)
    def endless():
        while True:
            yield

    @metered(node)
    async def aendless():
        while True:
            yield

    async def leave():
        generator = aendless()
        await generator.__anext__()
        await generator.aclose()
        return aendless.energy()

    left = endless()
    next(left)
    left.close()
    assert endless.energy().seconds > 0 and asyncio.run(leave()).seconds > 0


def test_without_a_node_and_with_books(cards, node):
    @metered
    def bare():
        return 1

    assert bare() == 1 and bare.energy().error in ("no_baseline", "window_below_resolution")
    with Books(node) as books:

        @metered(books, tokens=5)
        def booked():
            time.sleep(0.1)

        booked()
        assert isinstance(booked.energy(), Receipt) and booked.energy().completion_tokens == 5


@pytest.mark.parametrize("tokens", [1.5, "many", True, -3, 2**70, [4]], ids=repr)
@pytest.mark.parametrize("given", ["itself", "by a callable"])
def test_a_count_that_is_none_is_not_known(node, tokens, given):
    said = tokens if given == "itself" else lambda _: tokens

    def check(of):
        @metered(of, tokens=said)
        def plain():
            return "fine"

        @metered(of, tokens=said)
        async def coroutine():
            return "fine"

        assert plain() == asyncio.run(coroutine()) == "fine"
        return plain.energy()

    assert check(node).seconds > 0
    with Books(node) as books:
        assert check(books).completion_tokens in (None, 0)


def test_an_async_generator_is_talked_to_as_its_own(node):
    told, seen = [], []

    @metered(node, to=told.append)
    async def talk():
        answer = None
        while answer != "end":
            try:
                answer = yield answer
                seen.append(answer)
            except KeyError as error:
                answer = f"caught {error.args[0]}"
            finally:
                await asyncio.sleep(0)

    @metered(node, to=told.append)
    async def closing():
        try:
            yield 1
        except GeneratorExit:
            await asyncio.sleep(0)
            seen.append("closed")
            raise

    async def work():
        talking = talk()
        assert await talking.asend(None) is None
        assert await talking.asend("a") == "a"
        assert await talking.athrow(KeyError("b")) == "caught b"
        assert not told
        with pytest.raises(StopAsyncIteration):
            await talking.asend("end")
        assert len(told) == 1
        talking = talk()
        await talking.asend(None)
        thrown = ValueError("of the caller")
        with pytest.raises(ValueError) as caught:
            await talking.athrow(thrown)
        assert caught.value is thrown and caught.value.__context__ is None and len(told) == 2
        left = closing()
        await anext(left)
        await left.aclose()
        await left.aclose()

    asyncio.run(work())
    assert seen == ["a", "end", "closed"] and len(told) == 3


def test_arguments_that_do_not_fit_end_the_work_too(node):
    told = []

    @metered(node, to=told.append)
    async def agenerator(one):
        yield one

    async def work():
        with pytest.raises(TypeError):
            await anext(agenerator())

    asyncio.run(work())
    assert len(told) == 1


@pytest.fixture
def ending(node):
    """Work on a ticket, and what was told of it."""
    from joulebook._work import Work

    with Books(node) as books:
        told = []
        yield Work(books, to=told.append).begin(), told


def test_work_that_is_cancelled_while_it_ends(ending):
    work, told = ending

    async def cancelled():
        task = asyncio.create_task(work.aend(3))
        await asyncio.sleep(0)
        task.cancel("by its caller")
        with pytest.raises(asyncio.CancelledError, match="by its caller"):
            await task

    asyncio.run(cancelled())
    assert [(receipt.status, receipt.completion_tokens) for receipt in told] == [("done", 3)]
    assert work.cost is told[0]


def test_work_that_runs_out_of_time_while_it_ends(ending):
    work, told = ending

    async def late():
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await work.aend(3)
        return asyncio.current_task().cancelling()

    assert asyncio.run(late()) == 0 and len(told) == 1


@pytest.mark.parametrize("library", ["trio", "anyio on asyncio", "anyio on trio"])
def test_work_that_ends_in_a_scope_that_is_cancelled(ending, library):
    anyio = pytest.importorskip("anyio")
    trio = pytest.importorskip("trio")
    work, told = ending
    of = trio if library == "trio" else anyio
    passed = []

    async def cancelled():
        with of.CancelScope() as scope:
            scope.cancel()
            await work.aend(3)
            await of.sleep(0)
            passed.append(True)
        return scope.cancelled_caught

    if library == "trio":
        assert trio.run(cancelled)
    else:
        assert anyio.run(cancelled, backend=library.removeprefix("anyio on "))
    assert [receipt.status for receipt in told] == ["done"] and not passed
