"""Google Gemini, the answering half: a response body to events.

A function call is a whole part and complete at once, except on Vertex with streamed arguments. There is no end mark:
the body ends, and must have named a finish reason before.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping

from novacode.errors import ModelFailed, RemoteProtocolError
from novacode.protocols import failures, jsonio
from novacode.protocols.assemble import Draft, Prose, number, string
from novacode.protocols.decoding import BodyDecoder
from novacode.protocols.framing import SseFramer
from novacode.values.events import Started
from novacode.values.failure import Failure, FailureKind
from novacode.values.ids import CallIds
from novacode.values.parts import JSON, ServerBlock
from novacode.values.request import StopReason, Usage

__all__ = ["GeminiReply"]

_STOPS: Mapping[str | None, StopReason] = {
    "STOP": StopReason.END,
    "MAX_TOKENS": StopReason.OUTPUT_LIMIT,
    "SAFETY": StopReason.REFUSAL,
    "RECITATION": StopReason.REFUSAL,
    "LANGUAGE": StopReason.REFUSAL,
    "BLOCKLIST": StopReason.REFUSAL,
    "PROHIBITED_CONTENT": StopReason.REFUSAL,
    "SPII": StopReason.REFUSAL,
    "IMAGE_SAFETY": StopReason.REFUSAL,
}
# The model wrote a call the provider could not read. Asking again mostly helps; what came with it must not run.
_MALFORMED = frozenset({"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MALFORMED_RESPONSE"})

_STEP = re.compile(r"""\.([^.\[\]]+)|\[(\d+)\]|\[['"]([^'"]*)['"]\]""")
_VALUES = ("stringValue", "numberValue", "boolValue", "nullValue")


class _Arguments:
    """Arguments that come as values at JSON paths."""

    def __init__(self) -> None:
        self.root: dict[str, JSON] = {}

    def put(self, piece: dict[str, JSON]) -> None:
        """Put the value of one piece at its path; strings at one path grow."""
        steps = [int(place) if place else key or quoted for key, place, quoted in _STEP.findall(piece["jsonPath"])]
        kind = next((kind for kind in _VALUES if kind in piece), None)
        if not steps or isinstance(steps[0], int) or kind is None:
            raise ValueError(f"an argument without a place or value: {piece!r}")
        at: JSON = self.root
        for step, following in itertools.pairwise(steps):
            at = _inside(at, step, [] if isinstance(following, int) else {})
        value = None if kind == "nullValue" else piece[kind]
        before = _inside(at, steps[-1], None)
        at[steps[-1]] = before + value if isinstance(before, str) and isinstance(value, str) else value


def _inside(at: JSON, step: int | str, default: JSON) -> JSON:
    if isinstance(step, int):
        if step > len(at):
            raise ValueError(f"an argument list has {len(at)} entries, and {step} was set")
        if step == len(at):
            at.append(default)
    elif step not in at:
        at[step] = default
    return at[step]


class GeminiReply(BodyDecoder):
    """One response body of Gemini, of the Gemini API or of Vertex."""

    def __init__(self, ids: CallIds) -> None:
        super().__init__(SseFramer(), ids)
        self._started = False
        self._prose: Prose | None = None
        self._thinks = False
        self._call: tuple[Draft, _Arguments] | None = None
        self._stop: str | None = None
        self._detail = ""
        self._blocked = False
        self._grounds: dict[str, JSON] = {}

    def _message(self, name: bytes, message: dict[str, JSON]) -> None:
        if "error" in message or name == b"error":
            raise ModelFailed(failures.from_error(message.get("error") or message, raw_stop=self._stop))
        if not self._started and "modelVersion" in message:
            self._started = True
            self._parts.events.append(Started(string(message["modelVersion"]), string(message.get("responseId"))))
        self._count(message.get("usageMetadata"))
        feedback = message.get("promptFeedback")
        if feedback and feedback.get("blockReason"):
            self._stop, self._detail = str(feedback["blockReason"]), string(feedback.get("blockReasonMessage"))
            self._blocked = True
        candidates = message.get("candidates")
        if candidates:
            self._candidate(candidates[0])

    def _candidate(self, candidate: dict[str, JSON]) -> None:
        stop = candidate.get("finishReason")
        parts = (candidate.get("content") or {}).get("parts") or ()
        if any((part.get("functionCall") or {}).get("args") for part in parts):
            parts = _exactly(self._payload)  # arguments keep every digit
        for part in parts:
            if not (stop in _MALFORMED and "functionCall" in part):
                self._part(part)
        grounds = candidate.get("groundingMetadata")
        if grounds:
            self._grounds.update(grounds)
        if candidate.get("urlContextMetadata"):
            self._grounds["urlContextMetadata"] = candidate["urlContextMetadata"]
        if stop:
            self._stop, self._detail = str(stop), string(candidate.get("finishMessage"))
        if stop in _MALFORMED:
            said = self._detail or "the model wrote a call that could not be read"
            raise ModelFailed(Failure(FailureKind.SERVER, f"{stop}: {said}", True, raw_type=stop, raw_stop=stop))

    # --- parts ----------------------------------------------------------------------------------------------------

    def _part(self, part: dict[str, JSON]) -> None:
        signature = part.get("thoughtSignature")
        if "text" in part:
            self._text(part["text"], thinks=bool(part.get("thought")), signature=signature)
        elif "functionCall" in part:
            self._leave()
            self._function_call(part["functionCall"], signature)
        elif part:
            self._leave()
            name = "code_execution" if "executableCode" in part else ""
            self._parts.part_done(self._parts.place(), ServerBlock(name, part))

    def _text(self, text: str, *, thinks: bool, signature: JSON) -> None:
        """Take text. A part with a signature stays by itself: the provider wants it back as it was cut."""
        if not text and not signature:
            return
        if self._prose is None or self._thinks != thinks or signature:
            self._leave()
            self._prose = self._parts.open_thinking() if thinks else self._parts.open_text()
            self._thinks = thinks
        self._parts.say(self._prose, text)
        if signature:
            self._prose.seal["thoughtSignature"] = signature
            self._leave()

    def _leave(self) -> None:
        if self._prose is not None:
            self._parts.end_prose(self._prose)
            self._prose = None

    def _function_call(self, call: dict[str, JSON], signature: JSON) -> None:
        if call.get("name") or self._call is None:
            self._begin_call(call, signature)
        if self._call is None:
            raise AssertionError("unreachable: a call was begun")
        draft, arguments = self._call
        arguments.root.update(call.get("args") or {})
        for piece in call.get("partialArgs") or ():
            arguments.put(piece)
        if not call.get("willContinue"):
            self._write_call()
            self._parts.end_call(draft)

    def _begin_call(self, call: dict[str, JSON], signature: JSON) -> None:
        self._write_call()
        draft = self._parts.draft()
        draft.name = string(call.get("name"))
        draft.wire_id = string(call.get("id"))
        if not draft.wire_id:
            draft.seal["wire_id"] = ""  # this server knows calls by name and order, and wants no id back
        if signature:
            draft.seal["thoughtSignature"] = signature
        self._parts.announce(draft)
        self._call = draft, _Arguments()

    def _write_call(self) -> None:
        """Write down the arguments of the call under way."""
        if self._call is not None:
            draft, arguments = self._call
            self._parts.write(draft, jsonio.dump_text(arguments.root))
            self._call = None

    # --- the rest -------------------------------------------------------------------------------------------------

    def _count(self, usage: JSON) -> None:
        if not usage or "promptTokenCount" not in usage:
            return
        self._parts.usage(
            Usage(
                number(usage["promptTokenCount"]),
                number(usage.get("candidatesTokenCount")),
                number(usage.get("cachedContentTokenCount")),
                None,
                number(usage.get("thoughtsTokenCount")),
                output_counts_reasoning=False,
            )
        )

    def _may_end(self) -> bool:
        return self._stop is not None

    def _end(self) -> None:
        if self._stop is None:
            raise RemoteProtocolError("the stream ended before its finish reason")
        self._leave()
        self._write_call()
        for name in _server_tools(self._grounds):
            self._parts.part_done(self._parts.place(), ServerBlock(name, {"groundingMetadata": self._grounds}))
        stop = StopReason.REFUSAL if self._blocked else _STOPS.get(self._stop, StopReason.UNKNOWN)
        if stop is StopReason.END and self._parts.calls_ready:
            stop = StopReason.TOOL_USE
        self._parts.finish(stop, self._stop, self._detail)


def _exactly(payload: bytes) -> list[dict[str, JSON]]:
    parts: list[dict[str, JSON]] = jsonio.load_exact(payload)["candidates"][0]["content"]["parts"]
    return parts


def _server_tools(grounds: dict[str, JSON]) -> list[str]:
    """Return the tools of the provider that its grounding metadata shows."""
    chunks = grounds.get("groundingChunks") or ()
    shown = {
        "google_search": bool(grounds.get("webSearchQueries")) or any("web" in chunk for chunk in chunks),
        "file_search": any("retrievedContext" in chunk for chunk in chunks),
        "url_context": bool(grounds.get("urlContextMetadata")),
    }
    return [name for name, used in shown.items() if used]
