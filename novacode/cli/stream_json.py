"""The `stream-json` output: one JSON object a line, in the form that is widely parsed.

`system` first, `assistant` and `user` (tool results) for every exchange, `result` last; with partial messages also
`stream_event` for what the model is saying, as it says it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import attrs

from novacode._version import VERSION
from novacode.cli.result import usage_object
from novacode.sessions.record import json_line
from novacode.values import events
from novacode.values.events import RunEvent, Stamped, TurnCommitted
from novacode.values.parts import (
    JSON,
    AssistantPart,
    BrokenCall,
    Image,
    ServerBlock,
    Text,
    Thinking,
    ToolCall,
    UserPart,
)
from novacode.values.request import StopReason, Usage
from novacode.values.results import Outcome, ToolResult

__all__ = ["Init", "StreamJson"]

_STOPS: Mapping[StopReason, str] = {
    StopReason.END: "end_turn",
    StopReason.TOOL_USE: "tool_use",
    StopReason.OUTPUT_LIMIT: "max_tokens",
    StopReason.REFUSAL: "refusal",
    StopReason.PAUSED: "pause_turn",
}


@attrs.frozen(eq=False, repr=False)
class Init:
    """What the first line says about the run. `sandbox` is what commands run in, missing where it is none.

    `tools` and `mcp_servers` are asked when the line is written: servers are known by then.
    """

    session_id: str
    model: str
    cwd: str
    tools: Sequence[str] | Callable[[], Sequence[str]]
    permission_mode: str
    sandbox: Mapping[str, JSON] | None = None
    mcp_servers: Callable[[], Sequence[JSON]] = tuple


class StreamJson:
    """A sink that writes lines. `write` gets each line whole, as bytes with its line end."""

    def __init__(self, write: Callable[[bytes], None], init: Init, *, include_partial: bool = False) -> None:
        self._write = write
        self._init = init
        self._partial = _Partial(init.model) if include_partial else None
        self._begun = False

    def __call__(self, stamped: Stamped) -> None:
        """Take an event; the sink to subscribe."""
        self.begin()
        if self._partial is not None:
            for raw in self._partial.lines(stamped.event):
                self._line({"type": "stream_event", "event": raw, "parent_tool_use_id": None})
        match stamped.event:
            case TurnCommitted() as turn:
                self._exchange(turn)
            case events.UserAdded(user=user):
                self._user([_user_block(part) for part in user.parts], origin=user.origin)
            case events.Compacted() as shorter:
                self._line(
                    {
                        "type": "system",
                        "subtype": "compact_boundary",
                        "compact_metadata": {
                            "trigger": "auto",
                            "pre_tokens": shorter.before_tokens,
                            "post_tokens": shorter.after_tokens,
                        },
                    }
                )
            case events.AttemptDropped() as dropped:
                self._line(
                    {
                        "type": "system",
                        "subtype": "api_retry",
                        "attempt": dropped.attempt,
                        "retry_delay_ms": round(dropped.delay * 1000),
                        "error": dropped.failure.kind.value,
                        "error_status": dropped.failure.status,
                        "message": dropped.failure.message,
                    }
                )
            case _:
                pass

    def begin(self) -> None:
        """Write the first line, unless it is written. Idempotent."""
        if self._begun:
            return
        self._begun = True
        self._line(
            {
                "type": "system",
                "subtype": "init",
                "cwd": self._init.cwd,
                "tools": list(self._init.tools() if callable(self._init.tools) else self._init.tools),
                "mcp_servers": list(self._init.mcp_servers()),
                "model": self._init.model,
                "permissionMode": self._init.permission_mode,
                "novacode_version": VERSION,
                **({"sandbox": dict(self._init.sandbox)} if self._init.sandbox else {}),
            }
        )

    def finish(self, result: Mapping[str, JSON]) -> None:
        """Write the result object, as the last line; the first line comes before it on every path."""
        self.begin()
        self._write(json_line(result))

    def _exchange(self, turn: TurnCommitted) -> None:
        message = {
            "type": "message",
            "role": "assistant",
            "model": self._init.model,
            "content": [_block(part) for part in turn.exchange.message.parts],
            "stop_reason": _stop(turn.stop),
            "usage": usage_object(turn.usage),
        }
        self._line({"type": "assistant", "message": message, "parent_tool_use_id": None})
        results = turn.exchange.results
        if results:
            self._user([_result_block(one) for one in results], outcomes=[_outcome(one) for one in results])

    def _user(self, content: list[JSON], **more: JSON) -> None:
        self._line(
            {"type": "user", "message": {"role": "user", "content": content}, "parent_tool_use_id": None, **more}
        )

    def _line(self, data: Mapping[str, JSON]) -> None:
        self._write(json_line({**data, "session_id": self._init.session_id}))


class _Partial:
    """Turns the model's fragments into raw streaming events, each part opened before and closed after its deltas."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._open: set[int] = set()
        self._usage = Usage()

    def lines(self, event: RunEvent) -> Iterator[Mapping[str, JSON]]:
        match event:
            case events.Started(model, response_id):
                self._open.clear()
                self._usage = Usage()
                yield {
                    "type": "message_start",
                    "message": {
                        "id": response_id,
                        "type": "message",
                        "role": "assistant",
                        "model": model or self._model,
                        "content": [],
                        "stop_reason": None,
                        "usage": usage_object(Usage()),
                    },
                }
            case events.TextDelta(index, text):
                yield from self._start(index, {"type": "text", "text": ""})
                yield _delta(index, {"type": "text_delta", "text": text})
            case events.ThinkingDelta(index, text):
                yield from self._start(index, {"type": "thinking", "thinking": "", "signature": ""})
                yield _delta(index, {"type": "thinking_delta", "thinking": text})
            case events.CallOpened(index, call_id, name):
                yield from self._start(index, {"type": "tool_use", "id": call_id, "name": name, "input": {}})
            case events.CallDelta(index=index, fragment=fragment):
                yield _delta(index, {"type": "input_json_delta", "partial_json": fragment})
            case events.PartDone(index=index) | events.CallReady(index=index) | events.CallBroken(index=index):
                yield from self._stop(index)
            case events.UsageSeen(usage):
                self._usage = usage
            case events.Finished() as finished:
                yield from self._finish(finished)
            case _:
                pass

    def _start(self, index: int, block: Mapping[str, JSON]) -> Iterator[Mapping[str, JSON]]:
        if index not in self._open:
            self._open.add(index)
            yield {"type": "content_block_start", "index": index, "content_block": block}

    def _stop(self, index: int) -> Iterator[Mapping[str, JSON]]:
        if index in self._open:
            self._open.remove(index)
            yield {"type": "content_block_stop", "index": index}

    def _finish(self, finished: events.Finished) -> Iterator[Mapping[str, JSON]]:
        for index in sorted(self._open):
            yield from self._stop(index)
        yield {
            "type": "message_delta",
            "delta": {"stop_reason": _stop(finished.stop), "stop_sequence": None},
            "usage": usage_object(self._usage),
        }
        yield {"type": "message_stop"}


def _delta(index: int, delta: Mapping[str, JSON]) -> Mapping[str, JSON]:
    return {"type": "content_block_delta", "index": index, "delta": delta}


def _stop(stop: StopReason | None) -> str | None:
    """Return the stop reason by its widely parsed name; `null` for a response that was interrupted."""
    return None if stop is None else _STOPS.get(stop, "unknown")


def _block(part: AssistantPart) -> JSON:
    match part:
        case Text(text):
            return {"type": "text", "text": text}
        case Thinking(text, seal):
            signature = (seal or {}).get("signature", "")
            return {"type": "thinking", "thinking": text, "signature": signature if isinstance(signature, str) else ""}
        case ToolCall():
            return {"type": "tool_use", "id": part.id, "name": part.name, "input": part.arguments}
        case BrokenCall():
            # It is a call, so that its result has something to answer; what the model wrote is not a JSON object.
            problem = {"raw": part.raw, "problem": part.problem}
            return {"type": "tool_use", "id": part.id, "name": part.name, "input": {}, "broken": problem}
        case ServerBlock(name, raw):
            return dict(raw) if isinstance(raw.get("type"), str) else {"type": "server_block", "name": name, "raw": raw}


def _user_block(part: UserPart) -> JSON:
    if isinstance(part, Image):
        return {"type": "image", "source": {"type": "base64", "media_type": part.media_type, "data": part.data}}
    return {"type": "text", "text": part.text}


def _result_block(result: ToolResult) -> JSON:
    plain = all(isinstance(part, Text) for part in result.content)
    return {
        "type": "tool_result",
        "tool_use_id": result.call_id,
        "content": result.text if plain else [_user_block(part) for part in result.content],
        "is_error": result.outcome is not Outcome.OK,
    }


def _outcome(result: ToolResult) -> JSON:
    """Return what the widely parsed form has no place for: refused, failed and cut short are told apart."""
    return {
        "tool_use_id": result.call_id,
        "tool_name": result.name,
        "outcome": result.outcome.value,
        "began": result.began,
        "exit_code": result.exit_code,
    }
