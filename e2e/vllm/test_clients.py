"""The clients tell a whole stream from every other one; a test of falls is worth what they see."""

from __future__ import annotations

import asyncio
import json

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from e2e.vllm.clients import Client, Connections, End

TOKENS = 3


def event(text: str = "a", *, finished: str | None = None) -> str:
    return json.dumps({"choices": [{"index": 0, "text": text, "finish_reason": finished}]})


def usage(tokens: int) -> str:
    return json.dumps({"choices": [], "usage": {"completion_tokens": tokens}})


WHOLE = [event(), event(), event(finished="length"), usage(TOKENS), "[DONE]"]
ERROR = json.dumps({"error": {"message": "EngineCore died", "code": 500}})


@pytest.mark.parametrize(
    ("events", "end", "says"),
    [
        pytest.param(WHOLE, End.WHOLE, "", id="whole"),
        pytest.param([event(), ERROR, "[DONE]"], End.CUT, "EngineCore died", id="an-error-and-then-done"),
        pytest.param([*WHOLE[:-2], ERROR, *WHOLE[-2:]], End.CUT, "EngineCore died", id="an-error-between"),
        pytest.param(WHOLE[:2], End.CUT, "no [DONE]", id="it-just-ends"),
        pytest.param([event(), usage(1), "[DONE]"], End.CUT, "finish_reason", id="no-finish-reason"),
        pytest.param([event(finished="abort"), usage(1), "[DONE]"], End.CUT, "abort", id="aborted"),
        pytest.param([event(finished="length"), usage(2), "[DONE]"], End.CUT, "2 of 3", id="fewer-tokens"),
        pytest.param([event(finished="length"), "[DONE]"], End.CUT, "0 of 3", id="nobody-counted"),
        pytest.param([ERROR, "[DONE]"], End.FAILED, "EngineCore died", id="refused-within-the-stream"),
        pytest.param([], End.FAILED, "no [DONE]", id="nothing"),
    ],
)
async def test_a_stream_is_whole_only_with_all_of_it(events, end, says):
    async def answer(request):
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for each in events:
            await response.write(f"data: {each}\n\n".encode())
        return response

    ended = await ask(answer)

    assert (ended.end, says in ended.detail) == (end, True)


async def refuse(_):
    return web.json_response({"error": "busy"}, status=503)


async def hang(_):
    await asyncio.sleep(60)


async def break_off(request):
    response = web.StreamResponse()
    response.enable_chunked_encoding()
    await response.prepare(request)
    await response.write(f"data: {event()}\n\n".encode())
    request.transport.close()
    return response


@pytest.mark.parametrize(
    ("answer", "end"),
    [
        pytest.param(refuse, End.FAILED, id="refused"),
        pytest.param(hang, End.HUNG, id="hangs"),
        pytest.param(break_off, End.CUT, id="the-connection-breaks"),
    ],
)
async def test_what_is_no_stream_is_told_apart(answer, end):
    assert (await ask(answer)).end is end


async def test_nobody_there_is_a_failure():
    client = Client(url="http://127.0.0.1:9", model="tiny", tokens=TOKENS, shortest=TOKENS, patience_s=5)
    async with client.session(Connections.EACH) as session:
        assert (await client.ask(session)).end is End.FAILED


@pytest.mark.parametrize(("connections", "used"), [(Connections.EACH, 3), (Connections.KEPT, 1)])
async def test_a_connection_for_each_request_or_one_for_all(connections, used):
    peers = set()

    async def answer(request):
        peers.add(request.transport.get_extra_info("peername"))
        return web.Response(text="")

    await ask(answer, times=3, connections=connections)

    assert len(peers) == used


async def ask(answer, *, times=1, connections=Connections.EACH):
    """What a client sees of a server that answers so, at the last of its requests."""
    app = web.Application()
    app.router.add_post("/v1/completions", answer)
    async with TestServer(app) as server:
        client = Client(
            url=f"http://127.0.0.1:{server.port}", model="tiny", tokens=TOKENS, shortest=TOKENS, patience_s=1
        )
        async with client.session(connections) as session:
            for _ in range(times):
                ended = await client.ask(session)
    return ended
