"""The messages: parsed within bounds, told apart, and never an exception that is not meant for the sender."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from novacode.remote import protocol
from novacode.remote.bounds import BadMessage, Bounds, parse_object

_MESSAGES = {
    "hello": protocol.Hello,
    "open": protocol.Open,
    "new": protocol.New,
    "sessions": protocol.ListSessions,
    "prompt": protocol.Prompt,
    "permission_response": protocol.PermissionResponse,
    "cancel": protocol.Cancel,
    "settings": protocol.SettingsChange,
    "compact": protocol.Compact,
    "rewind": protocol.Rewind,
    "resync": protocol.Resync,
    "ping": protocol.Ping,
}
_JSON: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=10,
)
_KEYS = st.sampled_from(
    ["type", "ref", "version", "session", "lastSeq", "server", "name", "text", "id", "runId", "response", "reason",
     "rule", "callId", "hurry", "mode", "limits", "wanted", "run", "turn", "call", "undo", "force", "preview"]
)  # fmt: skip


@given(st.dictionaries(_KEYS, _JSON), st.sampled_from([*_MESSAGES, "other"]))
def test_any_object_is_a_message_or_told_why_not(data: dict[str, Any], tag: str) -> None:
    """What comes out is of the class of its type; else there is an `error` to send, with the sender's `ref`."""
    try:
        message = protocol.parse(json.dumps({**data, "type": tag}))
    except BadMessage as bad:
        reply = json.loads(protocol.encode(bad.reply()))
        assert (reply["type"], bool(reply["text"])) == ("error", True)
        assert reply.get("ref", "") == (data["ref"] if isinstance(data.get("ref"), str) else "")
    else:
        assert type(message) is _MESSAGES[tag]


@given(st.text(max_size=200) | st.binary(max_size=200))
def test_any_text_is_an_object_or_refused(text: str | bytes) -> None:
    """No other exception."""
    code = ""
    try:
        assert isinstance(parse_object(text), dict)
    except BadMessage as bad:
        code = bad.code
    assert code in ("", "bad_message", "too_big")


@given(st.integers(1, 30), st.integers(0, 60), st.sampled_from(["[]", "{}"]))
def test_bounds_hold_exactly(depth: int, values: int, kind: str) -> None:
    """One level and one value more than allowed is too much, wherever brackets and commas in texts stand."""
    bounds = Bounds(depth=16, values=40)
    deep = "[" * depth + "]" * depth if kind == "[]" else '{"[{,":' * depth + "1" + "}" * depth
    _is_refused(f'{{"a":{deep}}}', bounds, depth + 1 > 16)
    # The object and the list are values, and each comma begins one more.
    wide = ",".join('"],[,"' for _ in range(values))
    _is_refused(f'{{"a":[{wide}]}}', bounds, max(values - 1, 0) + 2 > 40)


def _is_refused(text: str, bounds: Bounds, expected: bool) -> None:
    if not expected:
        assert json.loads(text) == parse_object(text, bounds)
        return
    with pytest.raises(BadMessage) as refused:
        parse_object(text, bounds)
    assert (refused.value.code, refused.value.fatal) == ("too_big", True)


@pytest.mark.parametrize("text", ["[" * 1_000_000, '"' + '\\"' * 500_000, '{"a":"' + "\\" * 999_999, '""' * 500_000])
def test_a_megabyte_of_anything_is_refused_soon(text: str) -> None:
    """In linear time: where it were not, a megabyte would not come to an end within the limit of a test."""
    with pytest.raises(BadMessage):
        parse_object(text)


def test_what_is_missing_in_an_answer_is_empty_and_matches_nothing() -> None:
    """A run id that is no text is no run id."""
    for given_ in ({}, {"id": 1, "runId": ["r"], "response": {}}, {"id": None, "runId": None, "response": None}):
        message = protocol.parse(json.dumps({"type": "permission_response", **given_}))
        assert message == protocol.PermissionResponse()


def test_every_message_of_a_client_is_in_the_documentation() -> None:
    """With all its fields; and the examples there are messages."""
    text = (Path(__file__).resolve().parents[2] / "docs" / "remote.md").read_text()
    section = text[text.index("### From the client") : text.index("### From the server")]
    examples = re.findall(r'^\{"type": .*$', section, re.MULTILINE)
    seen = set()
    for example in examples:
        message = protocol.parse(example.replace("…", "x"))
        seen.add(type(message))
    assert seen == set(_MESSAGES.values())
    for tag, cls in _MESSAGES.items():
        for field in attrs.fields(cls):
            name = field.metadata.get("key") or field.name
            assert f'"{name}"' in section or f"`{name}`" in section, (tag, name)


def test_the_protocol_needs_no_event_loop() -> None:
    """It imports neither trio nor anything that opens a socket."""
    code = (
        "import sys, novacode.remote.protocol; print(*{'trio', 'socket', 'starlette', 'hypercorn'} & set(sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "\n"
