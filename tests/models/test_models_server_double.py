"""The scripted server that other tests rely on does what it is told."""

import json
import urllib.error
import urllib.request

import pytest
import trio
from doubles.model_server import Answer, Close, server_in_thread, serving


def post(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as response:
        return response.status, response.read()


def test_it_can_run_in_a_thread_of_its_own():
    with server_in_thread([Answer((b"one", b"two"))]) as server:
        assert post(f"{server.url}/v1/x", {"a": 1}) == (200, b"onetwo")
        [seen] = server.requests
        assert (seen.method, seen.path, seen.json) == ("POST", "/v1/x", {"a": 1})


def test_a_request_too_many_is_told_so():
    with server_in_thread() as server:
        with pytest.raises(urllib.error.HTTPError) as caught:
            post(server.url, {})
        with caught.value as response:
            assert response.code == 500
            assert b"request 1 came, but only 0 answers were given" in response.read()


def test_answers_may_depend_on_the_request():
    with server_in_thread(lambda seen: Answer((seen.body[::-1],))) as server:
        assert post(server.url, 12) == (200, b"21")


def broken(_):
    raise ZeroDivisionError("mine")


def test_an_answering_function_that_raises_fails_the_test():
    def use():
        with server_in_thread(broken) as server:
            with pytest.raises(urllib.error.HTTPError) as caught:
                post(server.url, {})
            caught.value.close()

    with pytest.raises(ZeroDivisionError, match="mine"):
        use()


async def test_it_ends_with_its_block_though_a_client_is_connected():
    with trio.fail_after(5):
        async with serving([Answer((Close(),))]) as server:
            port = int(server.url.rpartition(":")[2])
            stream = await trio.open_tcp_stream("127.0.0.1", port)
            await server.wait_closed(0)
        assert await stream.receive_some() == b""
        await stream.aclose()
