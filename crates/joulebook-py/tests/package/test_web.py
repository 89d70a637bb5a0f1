"""Joules on answers: of an ASGI application, and on those that clients get."""

import asyncio
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

import joulebook
from joulebook import Books, Energy, Receipt
from joulebook.asgi import EnergyMiddleware
from joulebook.hooks import httpx_async_hooks, httpx_hooks, with_energy

from .conftest import near

httpx = pytest.importorskip("httpx")


async def bare(scope, receive, send):
    """An application without a framework."""
    path = scope["path"]
    await asyncio.sleep(0.2)
    joulebook.mark("thought")
    if path == "/boom":
        raise ValueError("of the application")
    await send({"type": "http.response.start", "status": 200, "headers": [(b"x-own", b"1")]})
    if path == "/stream":
        for _ in range(3):
            await asyncio.sleep(0.05)
            await send({"type": "http.response.body", "body": b"piece", "more_body": True})
    scope["state"]["energy_tokens"] = 7
    await send({"type": "http.response.body", "body": b"end"})


def starlette():
    applications = pytest.importorskip("starlette.applications")
    responses = pytest.importorskip("starlette.responses")
    from starlette.routing import Route

    def thought(request):
        # In a thread of the framework's, which inherits the context.
        time.sleep(0.2)
        joulebook.mark("thought")
        request.state.energy_tokens = 7
        assert request.state.energy is not None
        return responses.PlainTextResponse("end")

    async def stream(request):
        async def pieces():
            for _ in range(3):
                await asyncio.sleep(0.1)
                yield b"piece"

        joulebook.mark("thought")
        return responses.StreamingResponse(pieces())

    def boom(request):
        raise ValueError("of the application")

    routes = [Route("/whole", thought), Route("/stream", stream), Route("/boom", boom)]
    return applications.Starlette(routes=routes)


def asked(app, *paths):
    async def ask():
        answers = []
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://here") as client:
            for path in paths:
                try:
                    answers.append(await client.get(path))
                except ValueError as error:
                    answers.append(error)
        return answers

    return asyncio.run(ask())


@pytest.mark.parametrize("make", [lambda: bare, starlette], ids=["bare", "starlette"])
def test_an_applications_answers(node, draw, make):
    told = []
    app = EnergyMiddleware(make(), node, to=lambda scope, energy: told.append((scope["path"], energy)),
                           joules_per_1k_hint=1000.0)
    draw(350.0)
    whole, stream, error = asked(app, "/whole", "/stream", "/boom")
    assert whole.text == "end" and whole.headers["x-energy-method"] == "sampled"
    assert float(whole.headers["x-energy-joules"]) > 0
    assert stream.status_code == 200 and "x-energy-joules" not in stream.headers
    assert isinstance(error, ValueError)
    paths, energies = zip(*told)
    assert paths == ("/whole", "/stream", "/boom")
    assert near(energies[0], 300) and list(energies[0].stages) == ["thought"] and near(energies[1], 300)
    assert joulebook.current() is None


def test_what_is_no_request_passes_by(node):
    passed = []

    async def app(scope, receive, send):
        passed.append((scope, receive, send))

    for kind in ("lifespan", "websocket"):
        asyncio.run(EnergyMiddleware(app, node)({"type": kind}, "receive", "send"))
    assert passed == [({"type": "lifespan"}, "receive", "send"), ({"type": "websocket"}, "receive", "send")]


def test_an_application_with_books(node, draw):
    told = []
    with Books(node) as books:
        def tell(scope, receipt):
            told.append(receipt)
            raise RuntimeError("of the caller's own making")

        app = EnergyMiddleware(bare, books, to=tell)
        draw(350.0)
        whole, stream, _ = asked(app, "/whole", "/stream", "/boom")
        assert whole.headers["x-energy-id"] == "1" and stream.headers["x-energy-id"] == "2"
        assert [receipt.status for receipt in told] == ["done", "done", "failed"]
        assert told[0].route == "/whole" and told[0].completion_tokens == 7
        assert books.receipt(1).route == "/whole"


@pytest.fixture
def server():
    """A server in the shape of OpenAI's, that takes its time."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            time.sleep(0.2)
            usage = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
            answer = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "usage": usage,
                      "choices": [{"index": 0, "finish_reason": "stop",
                                   "message": {"role": "assistant", "content": "hi"}}]}
            stream = asked.get("stream")
            self.send_response(200)
            self.send_header("content-type", "text/event-stream" if stream else "application/json")
            self.end_headers()
            if not stream:
                self.wfile.write(json.dumps(answer).encode())
                return
            piece = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m",
                     "choices": [{"index": 0, "delta": {"content": "hi"}}]}
            try:
                for each in (piece, {**piece, "choices": [], "usage": usage}):
                    self.wfile.write(f"data: {json.dumps(each)}\n\n".encode())
                    time.sleep(0.1)
                self.wfile.write(b"data: [DONE]\n\n")
            except OSError:
                pass  # the client has seen enough

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_an_http_clients_answers(node, draw, server):
    told = []
    draw(350.0)
    with httpx.Client(event_hooks=httpx_hooks(node, to=told.append)) as client:
        response = client.post(server, json={})
        assert response.json()["model"] == "m" and near(response.energy, 300)
        with client.stream("POST", server, json={"stream": True}) as response:
            assert response.energy is None
            assert b"[DONE]" in b"".join(response.iter_bytes())
        assert near(response.energy, 300) and response.energy.seconds > 0.3
        with client.stream("POST", server, json={"stream": True}) as response:
            pass
        assert isinstance(response.energy, Energy)
    assert len(told) == 3 and isinstance(told[0], Energy)

    async def again():
        async with httpx.AsyncClient(event_hooks=httpx_async_hooks(node, to=told.append)) as client:
            response = await client.post(server, json={})
            assert near(response.energy, 300)
            async with client.stream("POST", server, json={"stream": True}) as response:
                assert [_ async for _ in response.aiter_bytes()]
            assert near(response.energy, 300)

    asyncio.run(again())
    assert len(told) == 5


MESSAGES = [{"role": "user", "content": "hi"}]


def test_an_openai_clients_answers(node, draw, server):
    openai = pytest.importorskip("openai")
    told = []
    draw(350.0)
    client = with_energy(openai.OpenAI(base_url=server, api_key="none", max_retries=0), node, to=told.append)
    answer = client.chat.completions.create(model="m", messages=MESSAGES)
    assert answer.choices[0].message.content == "hi"
    assert answer.energy["method"] == "sampled" and answer.energy["joules_per_token"] > 1
    assert answer.model_dump()["energy"] == answer.energy and json.loads(answer.model_dump_json())["energy"]
    stream = client.chat.completions.create(model="m", messages=MESSAGES, stream=True)
    assert [piece.choices[0].delta.content for piece in stream if piece.choices] == ["hi"]
    assert stream.energy["joules_per_token"] > 1 and stream.response.status_code == 200
    with client.chat.completions.create(model="m", messages=MESSAGES, stream=True) as stream:
        next(stream)
    assert stream.energy["method"] == "sampled"
    with pytest.raises(openai.APIConnectionError):
        with_energy(openai.OpenAI(base_url="http://127.0.0.1:1", api_key="none", max_retries=0), node,
                    to=told.append).embeddings.create(model="m", input="x")
    assert len(told) == 4


def test_an_async_openai_client_with_books(node, draw, server):
    openai = pytest.importorskip("openai")

    async def ask(books):
        told = []
        client = with_energy(openai.AsyncOpenAI(base_url=server, api_key="none"), books, to=told.append)
        answer = await client.chat.completions.create(model="m", messages=MESSAGES)
        assert answer.energy["model"] == "m" and answer.energy["tokens"]["completion"] == 4
        stream = await client.chat.completions.create(model="m", messages=MESSAGES, stream=True)
        assert [piece async for piece in stream]
        assert stream.energy["status"] == "done"
        assert [type(receipt) for receipt in told] == [Receipt, Receipt]

    draw(350.0)
    with Books(node) as books:
        asyncio.run(ask(books))


class Sealed:
    """An answer that nothing can be put on, and whose usage is no usage."""

    __slots__ = ()

    @property
    def usage(self):
        raise RuntimeError("of the client's own making")


class Client:
    """In the shape of OpenAI's."""

    def __init__(self, create):
        self.completions = type("Completions", (), {"create": staticmethod(create)})()


def test_answers_that_cannot_carry_joules_are_what_they_were(node, caplog):
    sealed = Sealed()

    async def acreate(**_):
        return sealed

    with Books(node) as books:
        for of in (node, books):
            told = []
            client = with_energy(Client(lambda **_: sealed), of, to=told.append)
            aclient = with_energy(Client(acreate), of, to=told.append)
            assert client.completions.create(model=object()) is sealed
            assert asyncio.run(aclient.completions.create(model=object())) is sealed
            assert len(told) == 2
    assert "RuntimeError" in caplog.text and "AttributeError" in caplog.text


@pytest.mark.parametrize("tokens", [1.5, True, 2**70], ids=repr)
def test_tokens_of_an_application_that_are_no_count(node, tokens):
    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        scope["state"]["energy_tokens"] = tokens
        await send({"type": "http.response.body", "body": b"end"})

    def broken(scope):
        return tokens

    with Books(node) as books:
        for app in (EnergyMiddleware(app, node), EnergyMiddleware(app, books), EnergyMiddleware(app, node, tokens=broken)):
            (answer,) = asked(app, "/")
            assert answer.text == "end" and answer.headers["x-energy-method"]
