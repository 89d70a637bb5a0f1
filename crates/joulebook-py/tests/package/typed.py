"""What a typed program of a user's looks like; mypy reads it, nobody runs it."""

from typing import assert_type

from joulebook import Backend, Books, Energy, Fit, Meter, Node, Receipt, fits, metered, probe_node
from joulebook.asgi import EnergyMiddleware
from joulebook.types import CardState


class Card(Backend):
    name = "mine"
    kind = "sampler"

    def read_watts(self) -> float | None:
        return 70.0


def one(node: Node) -> float:
    with Meter.for_node(node, joules_per_1k_hint=4100.0).sync() as meter:
        meter.mark("a")
    energy = meter.result(tokens=3)
    assert_type(energy, Energy)
    assert_type(energy.stages, dict[str, Energy])
    assert_type(energy.per_token(3), float | None)
    assert_type(meter.settle(1.0, tokens=3), Energy)
    return energy.joules


async def other(books: Books) -> None:
    async with Meter(Card(), idle_w=10.0, source="local") as meter:
        assert_type(meter, Meter)
    assert_type(await meter.asettle(), Energy)
    async with books.open(model="m") as ticket:
        ticket.tokens(1)
    assert_type(await ticket.asettle(), Receipt)
    assert_type(await probe_node(None), CardState | None)
    assert_type(await fits(Node(gpus=[0]), 40_000), Fit)


@metered(Node(), to=print)
def plain(text: str, times: int = 1) -> str:
    return text * times


@metered
async def bare() -> int:
    return 1


def called() -> None:
    assert_type(plain("a", times=2), str)
    assert_type(plain.energy(), Energy | Receipt | None)


app = EnergyMiddleware(lambda scope, receive, send: bare_app(), Node())


async def bare_app() -> None: ...
