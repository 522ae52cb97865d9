"""OpenAI Responses, the answering half: a response body to events.

Items are told apart by their place in the output: their ids differ from event to event on some servers. Where a server
tells no place (llama.cpp) they go by their ids, and by their order where there is neither. A call is complete at the
`output_item.done` of its item and is never read a second time from the final summary, unless that is all there is.
"""

from __future__ import annotations

from collections.abc import Mapping

from novacode.errors import ModelFailed, RemoteProtocolError
from novacode.protocols import failures
from novacode.protocols.assemble import Draft, Prose, number, string
from novacode.protocols.decoding import BodyDecoder
from novacode.protocols.framing import SseFramer
from novacode.protocols.jsonio import dump_text
from novacode.values.events import Started
from novacode.values.ids import CallIds
from novacode.values.parts import JSON, ServerBlock
from novacode.values.request import StopReason, Usage

__all__ = ["OpenAIResponsesReply"]

_INCOMPLETE: Mapping[str, StopReason] = {
    "max_output_tokens": StopReason.OUTPUT_LIMIT,
    "max_tokens": StopReason.OUTPUT_LIMIT,
    "content_filter": StopReason.REFUSAL,
}


class OpenAIResponsesReply(BodyDecoder):
    """One response body of OpenAI Responses or of a server that imitates it."""

    def __init__(self, ids: CallIds) -> None:
        super().__init__(SseFramer(), ids)
        self._started = False
        self._open: dict[JSON, Prose | Draft] = {}
        self._done: set[JSON] = set()
        self._refusal: list[str] = []
        self._on = {
            "response.output_text.delta": self._text,
            "response.reasoning_summary_text.delta": self._thinking,
            "response.reasoning_text.delta": self._thinking,
            "response.function_call_arguments.delta": self._arguments,
            "response.function_call_arguments.done": self._all_arguments,
            "response.refusal.delta": self._refuse,
            "response.output_item.added": self._item_added,
            "response.output_item.done": self._item_done,
            "response.created": self._created,
            "response.completed": self._completed,
            "response.incomplete": self._incomplete,
            "response.failed": self._failed,
            "response.error": self._error,
            "error": self._error,
        }

    def _message(self, name: bytes, message: dict[str, JSON]) -> None:
        kind = message.get("type")
        if kind is None:
            kind = "error" if "error" in message else name.decode("utf-8", "replace")
        act = self._on.get(kind)
        if act is not None:
            act(message)

    # --- fragments ------------------------------------------------------------------------------------------------

    def _text(self, message: dict[str, JSON]) -> None:
        self._parts.say(self._prose(_place(message), thinks=False), message["delta"])

    def _thinking(self, message: dict[str, JSON]) -> None:
        self._parts.say(self._prose(_place(message), thinks=True), message["delta"])

    def _refuse(self, message: dict[str, JSON]) -> None:
        self._refusal.append(string(message.get("delta")))

    def _arguments(self, message: dict[str, JSON]) -> None:
        call = self._open.get(_place(message))
        if isinstance(call, Draft):
            self._parts.write(call, message["delta"])
        else:
            raise RemoteProtocolError(f"arguments came for item {_place(message)!r}, which is no open call")

    def _all_arguments(self, message: dict[str, JSON]) -> None:
        """Take arguments that came without fragments. The call waits for the end of its item all the same."""
        call = self._open.get(_place(message))
        if isinstance(call, Draft) and not call.text:
            self._parts.write(call, message.get("arguments") or "")

    def _prose(self, place: JSON, *, thinks: bool) -> Prose:
        part = self._open.get(place)
        if not isinstance(part, Prose):
            part = self._parts.open_thinking() if thinks else self._parts.open_text()
            self._open[place] = part
        return part

    # --- items ----------------------------------------------------------------------------------------------------

    def _item_added(self, message: dict[str, JSON]) -> None:
        item, place = message["item"], _place(message)
        if item["type"] == "function_call":
            self._call(item, place)
        elif item["type"] in {"message", "reasoning"}:
            self._prose(place, thinks=item["type"] == "reasoning")

    def _item_done(self, message: dict[str, JSON]) -> None:
        self._take_item(message["item"], _place(message))

    def _take_item(self, item: dict[str, JSON], place: JSON) -> None:
        if place is None:
            place = len(self._done), "in order"
            if None in self._open:
                self._open[place] = self._open.pop(None)
        if place in self._done:
            return
        self._done.add(place)
        match item["type"]:
            case "function_call":
                call = self._call(item, place)
                if not call.text:
                    given = item.get("arguments") or ""
                    self._parts.write(call, given if isinstance(given, str) else dump_text(given))
                if item.get("status") != "incomplete":
                    self._parts.end_call(call)
            case "message":
                self._take_message(item, place)
            case "reasoning":
                self._take_reasoning(item, place)
            case kind:
                self._parts.part_done(self._parts.place(), ServerBlock(_server_name(kind, item), item))

    def _call(self, item: dict[str, JSON], place: JSON) -> Draft:
        call = self._open.get(place)
        if isinstance(call, Draft):
            return call
        self._open[place] = call = self._parts.draft()
        call.name = string(item.get("name"))
        call.wire_id = string(item.get("call_id"))
        for key in ("id", "namespace"):
            if item.get(key):
                call.seal[key] = item[key]
        self._parts.announce(call)
        return call

    def _take_message(self, item: dict[str, JSON], place: JSON) -> None:
        text = self._prose(place, thinks=False)
        content = item.get("content") or ()
        if not text.pieces:
            self._parts.say(text, "".join(part.get("text") or "" for part in content))
        if not self._refusal:
            self._refusal += [part["refusal"] for part in content if part.get("type") == "refusal"]
        if text.pieces:
            text.seal.update({key: item[key] for key in ("id", "phase") if item.get(key)})
        self._parts.end_prose(text)

    def _take_reasoning(self, item: dict[str, JSON], place: JSON) -> None:
        thinking = self._prose(place, thinks=True)
        shown = [*(item.get("summary") or ()), *(item.get("content") or ())]
        if not thinking.pieces:
            self._parts.say(thinking, "".join(part.get("text") or "" for part in shown))
        kept = {key: item[key] for key in ("id", "content", "encrypted_content") if item.get(key)}
        kept["summary"] = item.get("summary") or []  # the provider misses it where it is left out for being empty
        if kept.get("encrypted_content") or kept.get("content"):
            thinking.seal.update(kept)
        self._parts.end_prose(thinking)

    # --- the response ---------------------------------------------------------------------------------------------

    def _created(self, message: dict[str, JSON]) -> None:
        if not self._started:
            self._started = True
            response = message.get("response") or {}
            self._parts.events.append(Started(string(response.get("model")), string(response.get("id"))))

    def _completed(self, message: dict[str, JSON]) -> None:
        response = self._last_words(message)
        raw = string(response.get("status")) or "completed"
        if raw == "incomplete":
            self._incomplete(message)
            return
        stop = StopReason.END if raw == "completed" else StopReason.UNKNOWN
        if self._parts.calls_ready and stop is StopReason.END:
            stop = StopReason.TOOL_USE
        self._finish(stop, raw)

    def _incomplete(self, message: dict[str, JSON]) -> None:
        response = self._last_words(message)
        raw = string((response.get("incomplete_details") or {}).get("reason")) or "incomplete"
        self._finish(_INCOMPLETE.get(raw, StopReason.UNKNOWN), raw)

    def _finish(self, stop: StopReason, raw: str) -> None:
        detail = "".join(self._refusal)
        self._parts.finish(StopReason.REFUSAL if detail else stop, raw, detail)

    def _last_words(self, message: dict[str, JSON]) -> dict[str, JSON]:
        """Take the usage, and the items where no event told of any."""
        response: dict[str, JSON] = message.get("response") or {}
        if not self._done and not self._open:
            for place, item in enumerate(response.get("output") or ()):
                self._take_item(item, place)
        usage = response.get("usage")
        if usage:
            read, written = usage.get("input_tokens_details") or {}, usage.get("output_tokens_details") or {}
            self._parts.usage(
                Usage(
                    number(usage.get("input_tokens")),
                    number(usage.get("output_tokens")),
                    number(read.get("cached_tokens")),
                    number(read.get("cache_write_tokens")),
                    number(written.get("reasoning_tokens")),
                )
            )
        return response

    def _failed(self, message: dict[str, JSON]) -> None:
        response = message.get("response") or {}
        raise ModelFailed(failures.from_error(response.get("error") or response, raw_stop="failed"))

    def _error(self, message: dict[str, JSON]) -> None:
        """Raise at once: `response.failed`, which mostly follows, says nothing more."""
        error = message.get("error") or {key: value for key, value in message.items() if key != "type"}
        raise ModelFailed(failures.from_error(error, raw_stop="failed"))

    def _mark(self, payload: bytes) -> bool:
        return payload == b"[DONE]"  # some gateways add it; the end is `response.completed`

    def _may_end(self) -> bool:
        return False

    def _end(self) -> None:
        raise RemoteProtocolError("the stream ended before response.completed")


def _place(message: dict[str, JSON]) -> JSON:
    place = message.get("output_index")
    if place is None:
        place = message.get("item_id")
    return place if place is not None else (message.get("item") or {}).get("id")


def _server_name(kind: str, item: dict[str, JSON]) -> str:
    if kind == "mcp_call":
        return string(item.get("name"))
    return kind.removesuffix("_call") if kind.endswith("_call") else ""
