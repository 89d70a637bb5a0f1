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
