"""Made-up values: histories of every shape the engine can leave behind, seals of every issuer included."""

from __future__ import annotations

from hypothesis import strategies as st

from novacode.values.history import Exchange, History
from novacode.values.ids import CallId
from novacode.values.parts import Assistant, BrokenCall, Image, Text, Thinking, ToolCall, User
from novacode.values.request import ModelRequest, ToolOffer
from novacode.values.results import EXECUTED, REFUSED, Outcome, ToolResult

ISSUERS = ("anthropic", "openai", "openrouter", "deepseek", "openai-responses", "gemini", "ollama-native", "")

texts = st.one_of(
    st.sampled_from(["", " \n", "Hi", "caf\u00e9 \U0001f600", "a\u2028b", 'quote " \\ end', "lone \ud83d half"]),
    st.text(max_size=20),
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
arguments = st.dictionaries(st.sampled_from(["path", "text", "n", ""]), json_values, max_size=3)
images = st.builds(Image, st.sampled_from(["image/png", "image/jpeg"]), st.just("aGk="))
names = st.sampled_from(["read", "write", "functions.read:0", "", "mit \u00fcmlaut", "n" * 90])
wire_ids = st.sampled_from(["call_a", "read:0", "x" * 80, "\u00fc", "a b", "fc|1", "0", ""])
seals = st.one_of(
    st.none(),
    st.fixed_dictionaries({"signature": st.just("sig+/==")}),
    st.fixed_dictionaries({"redacted": st.just("opaque==")}),
    st.fixed_dictionaries({"thoughtSignature": st.just("c2lnMQ==")}),
    st.fixed_dictionaries({"field": st.just("reasoning_content")}),
    st.fixed_dictionaries({"id": st.just("rs_1"), "summary": st.just([]), "encrypted_content": st.just("enc")}),
    st.fixed_dictionaries({"reasoning_details": st.just([{"type": "reasoning.text", "text": "h", "signature": "s"}])}),
    st.fixed_dictionaries({"wire_id": wire_ids}),
)
_message_seals = st.none() | st.fixed_dictionaries({"id": st.just("msg_1")})
users = st.lists(st.one_of(texts.map(Text), images), min_size=1, max_size=3).map(lambda parts: User(tuple(parts)))


@st.composite
def results(draw, call):
    outcome = draw(st.sampled_from(sorted(Outcome)))
    began = outcome in EXECUTED or (outcome not in REFUSED and draw(st.booleans()))
    content = draw(st.lists(st.one_of(texts.map(Text), images), max_size=3))
    return ToolResult(call.id, call.name, outcome, began, tuple(content))


@st.composite
def exchanges(draw, number):
    """Return the `number`th exchange of a history; the ids of its calls occur nowhere else in it."""
    parts = []
    for index in range(draw(st.integers(1, 5))):
        identity = CallId(draw(st.sampled_from(["", "tool.", "toolu_"])) + f"{number}-{index}")
        kind = draw(st.sampled_from(["text", "thinking", "call", "broken"]))
        if kind == "text":
            parts.append(Text(draw(texts), draw(_message_seals)))
        elif kind == "thinking":
            parts.append(Thinking(draw(texts), draw(seals)))
        elif kind == "call":
            parts.append(ToolCall(identity, index, draw(names), draw(arguments), draw(seals)))
        else:
            parts.append(BrokenCall(identity, index, draw(names), draw(texts), "cut", draw(seals)))
    message = Assistant(tuple(parts), draw(st.sampled_from(ISSUERS)))
    return Exchange(message, tuple(draw(results(call)) for call in message.calls))


@st.composite
def histories(draw):
    length = draw(st.integers(0, 6))
    items = [draw(users) if draw(st.booleans()) else draw(exchanges(number)) for number in range(length)]
    return History(tuple(items))


offers = st.lists(
    st.builds(
        ToolOffer,
        names.filter(bool),
        texts,
        st.just({"type": "object", "properties": {"path": {"type": "string"}}, "additionalProperties": False}),
    ),
    max_size=2,
).map(tuple)
requests = st.builds(ModelRequest, st.just("m"), texts, histories(), offers, st.none() | st.integers(1, 9999))
