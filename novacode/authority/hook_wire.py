"""What hooks are told and what they answer: JSON and exit codes, without running anything. Pure.

`payload` makes what a hook gets on stdin, `understand` says what its exit code and its output mean.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping

import attrs

from novacode.authority.hook_tools import familiar_input, familiar_name
from novacode.authority.hooks import HookEvent, HookWord
from novacode.authority.modes import Mode
from novacode.protocols.jsonio import mend
from novacode.values.ids import RunId
from novacode.values.parts import JSON, ToolCall
from novacode.values.results import Outcome, ToolResult
from novacode.workspace.paths import Workspace

__all__ = [
    "GUARDS",
    "HookFacts",
    "HookOutput",
    "HookSaid",
    "about_call",
    "about_result",
    "payload",
    "understand",
    "understood",
]

BLOCKED = 2
"""The exit code by which a hook says no."""

GUARDS = frozenset({HookEvent.PRE_TOOL_USE, HookEvent.USER_PROMPT_SUBMIT})
"""Events before which a hook stands guard: where it fails, the answer is no."""

_TEXT_IS_CONTEXT = frozenset({HookEvent.USER_PROMPT_SUBMIT, HookEvent.SESSION_START})
_WORDS: Mapping[str, HookWord] = {
    "allow": HookWord.ALLOW,
    "approve": HookWord.ALLOW,
    "ask": HookWord.ASK,
    "deny": HookWord.DENY,
    "block": HookWord.DENY,
}
_MODES = {Mode.ACCEPT_EDITS: "acceptEdits", Mode.BYPASS: "bypassPermissions"}
_OBJECT = re.compile(r"^[ \t]*\{", re.MULTILINE)
_ATTEMPTS = 200  # each that fails costs a look at all that stands before it
_SHOWN = 200


@attrs.frozen
class HookFacts:
    """What every hook of a session is told. `cwd` is where it runs, `project` what its variables name."""

    session_id: str
    workspace: Workspace
    project: str
    model: str = ""
    transcript: str = ""
    source: str = "startup"


@attrs.frozen
class HookOutput:
    """How a hook program ended: its code as in `subprocess`, and what it said. `cut`: it said more than was kept."""

    code: int
    stdout: bytes = b""
    stderr: bytes = b""
    cut: bool = False


@attrs.frozen
class HookSaid:
    """What a hook's answer means. `failure` is set where it cannot be understood: `word` then still says no if it did.

    `updated` is the input it wants instead, in the words of the hook. `context` and `reason` are for the model,
    `message` and `warning` for people. `stop` is why the run should end, where it should.
    """

    word: HookWord = HookWord.PASS
    reason: str = ""
    updated: Mapping[str, JSON] | None = None
    context: str = ""
    message: str = ""
    warning: str = ""
    stop: str = ""
    failure: str = ""


def payload(event: HookEvent, facts: HookFacts, run_id: RunId | None, mode: Mode) -> dict[str, JSON]:
    """Return what a hook is told about any event."""
    return {
        "session_id": facts.session_id,
        "turn_id": run_id or "",
        "transcript_path": facts.transcript,
        "cwd": str(facts.workspace.root),
        "hook_event_name": event.value,
        "permission_mode": _MODES.get(mode, mode.value),
        "model": facts.model,
    }


def about_call(call: ToolCall, workspace: Workspace) -> dict[str, JSON]:
    """Return what a hook is told about a call: in familiar words, and under other names in our own."""
    return {
        "tool_name": familiar_name(call.name),
        "tool_input": familiar_input(call, workspace),
        "tool_use_id": call.id,
        "novacode_tool_name": call.name,
        "novacode_tool_input": dict(call.arguments),
    }


def about_result(result: ToolResult) -> dict[str, JSON]:
    """Return what a hook is told about how a call ended."""
    response: dict[str, JSON] = {
        "success": result.outcome is Outcome.OK,
        "outcome": result.outcome.value,
        "content": result.text,
        "exit_code": result.exit_code,
        "interrupted": result.outcome is Outcome.TIMEOUT,
    }
    if result.name == "shell":
        response |= {"stdout": result.text, "stderr": ""}  # they came through one pipe
    if result.outcome is Outcome.OK:
        return {"tool_response": response}
    return {"tool_response": response, "error": result.text, "is_interrupt": False}


def understand(event: HookEvent, output: HookOutput) -> HookSaid:
    """Return what a program's end means. Never raises.

    0 is an answer, read from stdout; 2 says no, with the reason on stderr; everything else is a failure. A "no" that
    was printed counts whatever else went wrong.
    """
    said = _printed(event, output)
    words = output.stderr.decode("utf-8", "replace").strip()
    if output.code == 0:
        return said
    if output.code == BLOCKED:
        reason = said.reason if said.word is HookWord.DENY and said.reason else words
        return HookSaid(HookWord.DENY, reason, message=said.message, stop=said.stop)
    word = HookWord.DENY if said.word is HookWord.DENY else HookWord.PASS
    return attrs.evolve(said, word=word, updated=None, context="", failure=_ended(output.code, words))


def understood(event: HookEvent, answer: JSON) -> HookSaid:
    """Return what one answer, a JSON object or nothing, means. Never raises."""
    if answer is None:
        return HookSaid()
    if not isinstance(answer, Mapping):
        return HookSaid(failure=f"it answered with {_short(repr(answer))}, which is no JSON object")
    own = answer.get("hookSpecificOutput", {})
    if not isinstance(own, Mapping):
        return HookSaid(failure=f"`hookSpecificOutput` is {_short(repr(own))}, which is no JSON object")
    said = _decided(event, answer, own)
    problem = said.failure or _problem(event, own)
    return attrs.evolve(
        said,
        updated=own.get("updatedInput") if event is HookEvent.PRE_TOOL_USE and not problem else None,
        context=_text(own.get("additionalContext") or answer.get("additionalContext")),
        message=_text(answer.get("systemMessage")),
        failure=problem,
    )


def _printed(event: HookEvent, output: HookOutput) -> HookSaid:
    text = output.stdout.decode("utf-8", "replace").strip()
    if output.cut:
        return HookSaid(failure="it printed more than 1 MiB")
    if not text:
        return HookSaid()
    objects = list(_objects(text))
    if not objects:
        return _plain(event, text)
    answers = [understood(event, found) for found, _ in objects]
    denial = next((answer for answer in answers if answer.word is HookWord.DENY), None)
    if len(answers) > 1:
        return denial or HookSaid(failure=f"it printed {len(answers)} JSON objects, and one was expected")
    return answers[0] if objects[0][1] else attrs.evolve(answers[0], warning="it printed other text around its JSON")


def _plain(event: HookEvent, text: str) -> HookSaid:
    """Text that holds no JSON: context where that is what the event is for, no answer for a guard, else nothing."""
    if event in _TEXT_IS_CONTEXT and not text.startswith("{"):
        return HookSaid(context=text)
    if event in GUARDS or text.startswith("{"):
        return HookSaid(failure=f"it printed text that is no JSON object: {_short(text)}")
    return HookSaid()


def _objects(text: str) -> Iterator[tuple[Mapping[str, JSON], bool]]:
    """Yield the JSON objects that begin a line of `text`, each with whether it is all of the text."""
    decoder = json.JSONDecoder(parse_constant=lambda _: None)
    at = 0
    for start in itertools.islice(_OBJECT.finditer(text), _ATTEMPTS):
        if start.start() < at:
            continue
        at = start.end()
        try:
            found, end = decoder.raw_decode(text, at - 1)
        except (ValueError, RecursionError):
            continue
        yield mend(found), start.start() == 0 and end == len(text)
        at = end


def _decided(event: HookEvent, answer: Mapping[str, JSON], own: Mapping[str, JSON]) -> HookSaid:
    """Read the decision: the specific one where there is one, else the general; `continue: false` above both."""
    specific = own.get("permissionDecision") if event is HookEvent.PRE_TOOL_USE else None
    decision = answer.get("decision") if specific is None else specific
    reason = _text(own.get("permissionDecisionReason") or answer.get("reason"))
    stop = ""
    if answer.get("continue") is False:
        stop = _text(answer.get("stopReason")) or reason or "it gave no reason"
        return HookSaid(HookWord.DENY, reason or stop, stop=stop)
    if decision is None:
        return HookSaid(reason=reason)
    word = _WORDS.get(decision) if isinstance(decision, str) else None
    if word is None:
        problem = f"its decision is {_short(repr(decision))}, which is none of allow, ask, deny, approve, block"
        return HookSaid(HookWord.DENY if event in GUARDS else HookWord.PASS, reason or problem, failure=problem)
    return HookSaid(word, reason)


def _problem(event: HookEvent, own: Mapping[str, JSON]) -> str:
    named = own.get("hookEventName", event.value)
    if named != event.value:
        return f"`hookEventName` is {_short(repr(named))}, but the event is {event.value}"
    updated = own.get("updatedInput")
    if updated is not None and not isinstance(updated, Mapping):
        return f"`updatedInput` is {_short(repr(updated))}, which is no JSON object"
    return ""


def _ended(code: int, words: str) -> str:
    what = f"it was killed by signal {-code}" if code < 0 else f"it ended with exit code {code}"
    hint = {126: " (it may not be executed)", 127: " (command not found)"}.get(code, "")
    return f"{what}{hint}{': ' if words else ''}{_short(words)}"


def _text(value: JSON) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text)} characters)"
