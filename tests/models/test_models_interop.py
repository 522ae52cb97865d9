"""The same task against servers that other people wrote, in Python and in JavaScript, in all their protocols."""

from __future__ import annotations

import pytest
from doubles.foreign_servers import FINAL, QUESTION, SPOKEN, cache_folder, serving_foreign

from novacode.models.client import ModelClient
from novacode.models.endpoint import Endpoint
from novacode.models.http import HttpWire
from novacode.protocols.summary import codec_for
from novacode.values.events import CallReady, Finished, PartDone
from novacode.values.history import Exchange, History
from novacode.values.ids import CallIds
from novacode.values.parts import Assistant, Text, ToolCall, User
from novacode.values.request import ModelRequest, StopReason, ToolOffer
from novacode.values.results import Outcome, ToolResult

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

ARGUMENTS = {"command": "cat README", "note": 'quotes " and ünïcode'}
# Where requests go is the provider's base URL; these two have their version in it, not in the path.
PATHS = {"openai-chat": "/v1", "openai-responses": "/v1"}


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return cache_folder(tmp_path_factory.mktemp("interop"))


async def events_of(client, history):
    offer = ToolOffer("shell", "Run a command.", {"type": "object", "properties": {"command": {"type": "string"}}})
    events = []
    async with client.stream(ModelRequest("some-model", "You are helpful.", history, (offer,))) as stream:
        while more := await stream.receive():
            events += more
    return events


@pytest.mark.parametrize(
    ("name", "protocol"), [(name, protocol) for name in ("fakellm", "aimock") for protocol in SPOKEN[name]]
)
async def test_a_call_its_result_and_a_final_text(name, protocol, cache, tmp_path):
    with serving_foreign(name, cache, tmp_path, ARGUMENTS) as url:
        wire = HttpWire(Endpoint(url + PATHS.get(protocol, ""), {"authorization": "Bearer any", "x-api-key": "any"}))
        client = ModelClient(codec_for(protocol), wire, CallIds(), 20.0)
        history = History().with_user(User.said(QUESTION))

        events = await events_of(client, history)
        [ready] = [event for event in events if isinstance(event, CallReady)]
        assert ready.call == ToolCall(ready.call.id, ready.index, "shell", ARGUMENTS, ready.call.seal)
        # aimock's Gemini says FUNCTION_CALL, which the real one does not know.
        expected = StopReason.UNKNOWN if (name, protocol) == ("aimock", "gemini") else StopReason.TOOL_USE
        assert [event.stop for event in events if isinstance(event, Finished)] == [expected]

        result = ToolResult.of(ready.call, Outcome.OK, "hello from README", began=True)
        history = history.with_exchange(Exchange(Assistant((ready.call,), client.issuer), (result,)))
        events = await events_of(client, history)
        said = [event.part.text for event in events if isinstance(event, PartDone) and isinstance(event.part, Text)]
        assert said == [FINAL]
        assert [event.stop for event in events if isinstance(event, Finished)] == [StopReason.END]
        await wire.aclose()
