"""The same task against servers that other people wrote, one in Python and one in JavaScript, over two protocols.

The servers are installed into a folder of their own: `$NOVACODE_INTEROP_CACHE` where it is set, so that a second run
finds them, else one of pytest's temporary ones.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from novacode.models.client import ModelClient
from novacode.models.endpoint import Endpoint
from novacode.models.http import HttpWire
from novacode.protocols.anthropic import AnthropicCodec
from novacode.protocols.openai_chat import OpenAIChatCodec
from novacode.values.events import CallReady, Finished, PartDone
from novacode.values.history import Exchange, History
from novacode.values.ids import CallIds
from novacode.values.parts import Assistant, Text, ToolCall, User
from novacode.values.request import ModelRequest, StopReason, ToolOffer
from novacode.values.results import Outcome, ToolResult

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

FAKELLM = "fakellm==0.3.5"
AIMOCK = "@copilotkit/aimock@1.43.0"

ARGUMENTS = {"command": "cat README", "note": 'quotes " and ünïcode'}
FINAL = "The README says hello."

# First match wins: the answer to the result stands before the answer to the question, which stays in the history.
FAKELLM_RULES = {
    "version": 1,
    "rules": [
        {"name": "result", "when": {"tool_result_contains": "hello from README"}, "respond": {"content": FINAL}},
        {
            "name": "question",
            "when": {"messages_contain": "what does the README say", "tools_include": "shell"},
            "respond": {"tool_calls": [{"name": "shell", "arguments": ARGUMENTS}]},
        },
        {"name": "anything else", "respond": {"content": "unexpected request"}},
    ],
}
AIMOCK_FIXTURES = {
    "fixtures": [
        {"match": {"toolResultContains": "hello from README"}, "response": {"content": FINAL}},
        {
            "match": {"userMessage": "what does the README say", "toolName": "shell", "hasToolResult": False},
            "response": {"toolCalls": [{"name": "shell", "arguments": ARGUMENTS}]},
        },
    ]
}


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    given = os.environ.get("NOVACODE_INTEROP_CACHE")
    return Path(given) if given else tmp_path_factory.mktemp("interop")


def install(*command, cwd):
    """Run an installer, a second time if it fails; skip when it fails again, which is no fault of ours."""
    done = None
    for _ in range(2):
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=180, check=False)
        if done.returncode == 0:
            return
    pytest.skip(f"{command[0]} cannot install it: {(done.stderr or done.stdout).strip()[-300:]}")


@pytest.fixture(scope="module")
def fakellm(cache):
    """The program, installed into a virtual environment."""
    program = cache / "fakellm" / "bin" / "fakellm"
    if not program.exists():
        subprocess.run([sys.executable, "-m", "venv", str(cache / "fakellm")], check=True, timeout=120)
        install(str(program.with_name("pip")), "install", "--quiet", FAKELLM, cwd=cache)
    return program


@pytest.fixture(scope="module")
def aimock(cache):
    """The program, installed with npm."""
    folder = cache / "aimock"
    program = folder / "node_modules" / ".bin" / "aimock"
    if not program.exists():
        if shutil.which("npm") is None:
            pytest.skip("npm is not installed")
        folder.mkdir(parents=True, exist_ok=True)
        install("npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(folder), AIMOCK, cwd=folder)
    return program


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Started:
    """A server process that accepts connections, until the end of the `with` block."""

    def __init__(self, command, port, log):
        self.url = f"http://127.0.0.1:{port}"
        self._port = port
        self._log = log
        with log.open("wb") as output:
            self._process = subprocess.Popen(command, stdout=output, stderr=output, stdin=subprocess.DEVNULL)

    def __enter__(self):
        for _ in range(600):
            if self._process.poll() is not None:
                break
            try:
                socket.create_connection(("127.0.0.1", self._port), 1).close()
            except OSError:
                time.sleep(0.05)
            else:
                return self
        self.__exit__()
        raise AssertionError(f"the server did not start: {self._log.read_text()[-1000:]}")

    def __exit__(self, *_):
        self._process.terminate()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


@pytest.fixture(params=["fakellm", "aimock"])
def server(request, tmp_path):
    program, port = request.getfixturevalue(request.param), free_port()
    if request.param == "fakellm":
        config = tmp_path / "fakellm.yaml"
        config.write_text(json.dumps(FAKELLM_RULES))  # JSON is YAML
        command = [str(program), "serve", "--port", str(port), "--config", str(config)]
    else:
        (tmp_path / "fixtures.json").write_text(json.dumps(AIMOCK_FIXTURES))
        config = tmp_path / "aimock.json"
        config.write_text(json.dumps({"llm": {"fixtures": str(tmp_path / "fixtures.json")}}))
        command = [str(program), "--config", str(config), "--port", str(port)]
    with Started(command, port, tmp_path / "server.log") as started:
        yield started


async def events_of(client, history):
    offer = ToolOffer("shell", "Run a command.", {"type": "object", "properties": {"command": {"type": "string"}}})
    events = []
    async with client.stream(ModelRequest("some-model", "You are helpful.", history, (offer,))) as stream:
        while more := await stream.receive():
            events += more
    return events


@pytest.mark.parametrize(
    ("codec", "path", "key"),
    [
        (AnthropicCodec, "", {"x-api-key": "any"}),
        (OpenAIChatCodec, "/v1", {"authorization": "Bearer any"}),
    ],
    ids=["anthropic", "openai-chat"],
)
async def test_a_call_its_result_and_a_final_text(server, codec, path, key):
    wire = HttpWire(Endpoint(server.url + path, key))
    client = ModelClient(codec(), wire, CallIds(), 20.0)
    history = History().with_user(User.said("what does the README say"))

    events = await events_of(client, history)
    [ready] = [event for event in events if isinstance(event, CallReady)]
    assert ready.call == ToolCall(ready.call.id, ready.index, "shell", ARGUMENTS, ready.call.seal)
    assert [event.stop for event in events if isinstance(event, Finished)] == [StopReason.TOOL_USE]

    result = ToolResult.of(ready.call, Outcome.OK, "hello from README", began=True)
    history = history.with_exchange(Exchange(Assistant((ready.call,), client.issuer), (result,)))
    events = await events_of(client, history)
    said = [event.part.text for event in events if isinstance(event, PartDone) and isinstance(event.part, Text)]
    assert said == [FINAL]
    assert [event.stop for event in events if isinstance(event, Finished)] == [StopReason.END]
    await wire.aclose()
