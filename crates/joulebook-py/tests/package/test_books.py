"""Books and tickets."""

import asyncio
import time

import pytest

import joulebook
from joulebook import Books, Node

from .conftest import near


@pytest.fixture
def books(node):
    with Books(node) as books:
        yield books


def answer(ticket, tokens, seconds):
    for _ in range(tokens):
        ticket.tokens()
        time.sleep(seconds / tokens)


def test_a_request_alone_is_charged_what_the_card_did(books, draw):
    with books.open(model="m", caller="c", route="/v1", parent="p", prompt_bytes=100) as ticket:
        draw(350.0)
        ticket.prompt(20, cached=5)
        answer(ticket, 20, 0.5)
        ticket.mark("half")
        draw(50.0)
        ticket.used(prompt_tokens=20, cached_tokens=5, completion_tokens=20)
    receipt = ticket.settle()
    assert receipt.settled and receipt.status == "done" and receipt.method == "sampled"
    assert near(receipt, 300)
    assert (receipt.model, receipt.caller, receipt.route, receipt.parent) == ("m", "c", "/v1", "p")
    assert (receipt.prompt_tokens, receipt.completion_tokens) == (20, 20)
    assert receipt.joules_per_token == pytest.approx(receipt.joules / 20)
    assert receipt.prefill_joules + receipt.decode_joules == pytest.approx(receipt.joules)
    shape = receipt.as_dict()
    assert shape["tokens"]["cached"] == 5 and shape["marks"][0][0] == "half" and shape["rule"] == "ledger"
    assert books.receipt(ticket.id).joules == receipt.joules and books.receipt(10**9) is None


def test_requests_at_once_share_and_the_books_balance(books, draw):
    async def request(tokens):
        async with books.open() as ticket:
            for _ in range(tokens):
                ticket.tokens()
                await asyncio.sleep(0.5 / tokens)
        return await ticket.asettle()

    async def both():
        return await asyncio.gather(request(30), request(10))

    draw(350.0)
    many, few = asyncio.run(both())
    draw(50.0)
    assert many.settled and few.settled and many.joules > few.joules
    together = 300 * max(many.seconds, few.seconds)
    assert abs(many.joules + few.joules - together) <= many.bound_joules + few.bound_joules
    trial = books.trial_balance()
    assert trial["cards"][0]["imbalance_uj"] == 0 and trial["open"] == 0
    rate = books.since_start()
    assert rate["tokens"] == 40 and rate["joules_per_token"] > 0
    assert books.last_second() is None or books.last_second()["seconds"] == pytest.approx(1.0)


def test_how_a_ticket_ends(books):
    def ended(error=None):
        ticket = books.open()
        try:
            with ticket:
                if error is not None:
                    raise error
        except BaseException:
            pass
        return ticket.receipt().status

    assert ended() == "done" and ended(ValueError()) == "failed"
    assert ended(asyncio.CancelledError()) == ended(KeyboardInterrupt()) == "cancelled"
    ticket = books.open(queued=True)
    ticket.admitted()
    ticket.close("abandoned")
    ticket.close("failed")
    ticket.tokens()
    assert ticket.receipt().status == "abandoned"
    with pytest.raises(ValueError, match="'lost'"):
        books.open().close("lost")
    words = ["usage", "timings", "eval_count", "counted", "unknown"]
    for word in words:
        books.open().used(source=word)
    with pytest.raises(ValueError, match="source: 'guess' is none of " + ", ".join(f"'{it}'" for it in words)):
        books.open().used(source="guess")
    dropped = books.open().id
    assert books.receipt(dropped).status == "cancelled"


def test_one_card_has_one_book(node, books):
    with pytest.raises(RuntimeError, match="has books in this process already"):
        Books(node)
    books.close()
    books.close()
    assert books.open().receipt().error == "absent" and books.trial_balance() is None
    Books(node).close()


def test_a_journal_that_the_program_audits(node, tmp_path, draw):
    import subprocess

    from .test_life import program

    journal = tmp_path / "journal.jsonl"
    with Books(node, journal=journal, split="token", lenient=True) as books:
        with books.open(model="m") as ticket:
            draw(350.0)
            answer(ticket, 5, 0.3)
        assert ticket.settle().as_dict()["split"] == "token"
    audit = subprocess.run(program("audit", journal), capture_output=True, text=True, timeout=60)
    assert audit.returncode == 0, audit.stdout + audit.stderr
    with pytest.raises(OSError, match="nowhere"):
        Books(node, journal="/nowhere/at/all")
    with pytest.raises(ValueError, match="nowhere"):
        Books(node, rho="/nowhere/at/all")
    with pytest.raises(ValueError, match="'fair'"):
        Books(node, split="fair")


def test_books_of_nothing_say_so(cards):
    with Books(Node()) as books:
        with books.open() as ticket:
            ticket.tokens()
        receipt = ticket.settle(0.5)
        assert (receipt.method, receipt.joules) == ("unknown", None) and receipt.error


def test_a_settling_receipt_holds_no_loop(books):
    async def turns():
        ticket = books.open()
        with ticket:
            await asyncio.sleep(0.05)
        waiting = asyncio.ensure_future(ticket.asettle())
        taken = 0
        while not waiting.done():
            taken += 1
            await asyncio.sleep(0.001)
        return taken, waiting.result()

    taken, receipt = asyncio.run(turns())
    assert taken > 3 and isinstance(receipt, joulebook.Receipt)
