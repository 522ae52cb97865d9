"""The one event family.

Model events come out of codecs; run events are those and what the engine adds. The loop, the terminal, the JSON
streams, the journal, the remote page and the lab all consume these and nothing else.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping

import attrs

from novacode.values.failure import Failure
from novacode.values.history import Exchange
from novacode.values.ids import ApprovalId, CallId, RunId
from novacode.values.parts import JSON, BrokenCall, ServerBlock, Text, Thinking, ToolCall, User
from novacode.values.request import StopReason, Usage
from novacode.values.results import ToolResult

__all__ = [
    "LIVE",
    "ApprovalAsked",
    "ApprovalClosed",
    "AttemptDropped",
    "CallBroken",
    "CallDelta",
    "CallMoved",
    "CallOpened",
    "CallOutput",
    "CallReady",
    "CallSettled",
    "Compacted",
    "Emit",
    "FilesChanged",
    "Finished",
    "HookRan",
    "Level",
    "ModelEvent",
    "Notice",
    "PartDone",
    "Phase",
    "Reaped",
    "RunBegan",
    "RunEnded",
    "RunEvent",
    "RunStatus",
    "Stamped",
    "Started",
    "TextDelta",
    "ThinkingDelta",
    "TurnBegan",
    "TurnCommitted",
    "UsageSeen",
    "UserAdded",
]

# --- what a model says ------------------------------------------------------------------------------------------


@attrs.frozen
class Started:
    """The response has begun. Both fields are the provider's own and may be empty."""

    model: str = ""
    response_id: str = ""


@attrs.frozen
class TextDelta:
    """More visible text of part `index`."""

    index: int
    text: str


@attrs.frozen
class ThinkingDelta:
    """More readable reasoning of part `index`."""

    index: int
    text: str


@attrs.frozen
class CallOpened:
    """The model has begun to write a call. Nothing starts: its arguments are not known yet."""

    index: int
    id: CallId
    name: str


@attrs.frozen
class CallDelta:
    """More of the argument text of a call."""

    index: int
    id: CallId
    name: str
    fragment: str


@attrs.frozen
class CallReady:
    """A call is complete and its arguments are one JSON object: it can be executed now."""

    index: int
    call: ToolCall


@attrs.frozen
class CallBroken:
    """A call ended early, or its arguments are not one JSON object: it will never be executed."""

    index: int
    call: BrokenCall


@attrs.frozen
class PartDone:
    """A part that is not a call is finished; it holds what its deltas added up to, and its seal."""

    index: int
    part: Text | Thinking | ServerBlock


@attrs.frozen
class UsageSeen:
    """Token counts so far. The last one of a response is the right one; they are never added up within it."""

    usage: Usage


@attrs.frozen
class Finished:
    """The response is complete; always its last event. `raw` is the provider's word, `detail` what it explained."""

    stop: StopReason
    raw: str | None = None
    detail: str = ""


class Level(enum.StrEnum):
    """How much a notice matters to a person."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"


@attrs.frozen
class Notice:
    """Something a person may want to know. Never needed to understand the history."""

    level: Level
    text: str


ModelEvent = (
    Started
    | TextDelta
    | ThinkingDelta
    | CallOpened
    | CallDelta
    | CallReady
    | CallBroken
    | PartDone
    | UsageSeen
    | Finished
    | Notice
)

# --- what a run adds --------------------------------------------------------------------------------------------


class Phase(enum.StrEnum):
    """Where a call is. The arrows between them are `engine.ledger.NEXT`."""

    SUBMITTED = "submitted"
    AUTHORISING = "authorising"
    ASKING = "asking"
    QUEUED = "queued"
    RUNNING = "running"
    SETTLED = "settled"


class RunStatus(enum.StrEnum):
    """How a run ended. `RunEnded.reason` says which limit, signal or failure it was."""

    COMPLETED = "completed"
    REFUSED = "refused"
    FAILED = "failed"
    LIMIT = "limit"
    CANCELLED = "cancelled"


@attrs.frozen
class Reaped:
    """What stopping a run took, counted after everything had stopped. `ms` is from the request to quiet.

    `tasks` were still under way at the end, `processes` were signalled, `escalated` of them needed SIGKILL, and
    `survivors` are the pids that outlived even that: empty, or the machine is in trouble.
    """

    tasks: int = 0
    processes: int = 0
    escalated: int = 0
    survivors: tuple[int, ...] = ()
    ms: int = 0


@attrs.frozen
class RunBegan:
    """A run begins with what the person said."""

    prompt: User
    model: str = ""


@attrs.frozen
class TurnBegan:
    """The model is about to be asked; `number` counts from 1 within the run."""

    number: int


@attrs.frozen
class AttemptDropped:
    """The response under way is void and will be asked for again: discard what was drawn of it.

    Only before the first call was submitted. `delay` seconds pass before the next attempt.
    """

    failure: Failure
    attempt: int
    delay: float


@attrs.frozen
class CallMoved:
    """A call has entered `phase`. While it is `QUEUED`, `waits_for` names the calls that hold it up."""

    call_id: CallId
    name: str
    phase: Phase
    waits_for: tuple[CallId, ...] = ()


LIVE = 8_192


@attrs.frozen
class CallOutput:
    """More output of a running call, for people: the end of a chunk, at most `LIVE` characters of it.

    The result holds what the model gets. The last `LIVE` characters of all these texts together are those of the whole
    output, however it came in chunks.
    """

    call_id: CallId
    name: str
    text: str


@attrs.frozen
class ApprovalAsked:
    """A call waits for a person. `call` is exactly what will run: hooks have had their say.

    `summary` is one line, `details` what to look at before answering (a diff, the parsed commands), and `rule` the
    narrowest rules that an "always" would store, one a line, empty where none can.
    """

    approval_id: ApprovalId
    call: ToolCall
    reason: str
    summary: str = ""
    details: str = ""
    rule: str = ""


@attrs.frozen
class ApprovalClosed:
    """A question is gone: `decision` is `allow`, `deny` or `abandoned`, `by` who or what decided."""

    approval_id: ApprovalId
    call_id: CallId
    name: str
    decision: str
    by: str


@attrs.frozen
class HookRan:
    """A hook has run, for `event` (`PreToolUse` and so on); about the call, where `call_id` and `name` are set.

    `command` is what was run, or the name of a hook in this process. `seconds` is by the run's clock. `outcome` is
    what came of it: `pass`, `allow`, `ask`, `deny`, `rewrite`, `failed`, `timeout` or `cancelled`; `reason` its words.
    """

    event: str
    command: str
    seconds: float
    outcome: str
    call_id: CallId | None = None
    name: str = ""
    reason: str = ""


@attrs.frozen
class CallSettled:
    """A call has its one result. `seconds` is the time its tool ran, by the run's clock."""

    result: ToolResult
    seconds: float = 0.0


@attrs.frozen
class FilesChanged:
    """What a call has changed, as paths for people: relative to the working folder, a folder's with a `/` at its end.

    A rename is a deletion and a creation. `uncovered` has changed and is not kept (too large, say); `more` paths are
    not named. Where `problem` is set, what the call changed is not known, and it cannot be taken back.
    """

    call_id: CallId
    name: str
    created: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    uncovered: tuple[str, ...] = ()
    more: int = 0
    problem: str = ""


@attrs.frozen
class TurnCommitted:
    """An exchange became history. `stop` is why the response ended, or `None` where it was interrupted."""

    exchange: Exchange
    usage: Usage = attrs.field(factory=Usage)
    stop: StopReason | None = None
    raw_stop: str | None = None


@attrs.frozen
class UserAdded:
    """The runtime said something in the user's role (asked for the rest of a cut answer, say)."""

    user: User


@attrs.frozen
class Compacted:
    """The history was shortened between two turns, so that it fits the model; `compaction.compacted` applies this.

    With a `summary`, it takes the place of all items but the last `kept` and, of the person's own messages before
    those, the last `prompts`. The results of the calls in `trimmed` are shortened to so many bytes. The numbers are
    tokens, estimated: of the next request without and with this. What it leaves out stays on record.
    """

    kept: int = 0
    summary: str = ""
    prompts: int = 0
    trimmed: Mapping[CallId, int] = attrs.field(factory=dict)
    before_tokens: int = 0
    after_tokens: int = 0


@attrs.frozen
class RunEnded:
    """A run is over: nothing of it is left but what `reaped` names as survivors.

    `jobs` are the background jobs that were still running at its end, and were stopped with it.
    """

    status: RunStatus
    reason: str
    text: str = ""
    turns: int = 0
    usage: Usage = attrs.field(factory=Usage)
    cost_usd: float | None = None
    failure: Failure | None = None
    calls: Mapping[str, JSON] = attrs.field(factory=dict)
    reaped: Reaped = attrs.field(factory=Reaped)
    jobs: tuple[str, ...] = ()


RunEvent = (
    ModelEvent
    | RunBegan
    | TurnBegan
    | AttemptDropped
    | CallMoved
    | CallOutput
    | ApprovalAsked
    | ApprovalClosed
    | HookRan
    | FilesChanged
    | CallSettled
    | TurnCommitted
    | UserAdded
    | Compacted
    | RunEnded
)


@attrs.frozen
class Stamped:
    """An event as everybody but the engine sees it: `seq` counts from 1 within the session, `at` is seconds."""

    seq: int
    run_id: RunId
    at: float
    event: RunEvent


Emit = Callable[[RunEvent], None]
"""Synchronous: stamps, journals, fans out. Never a checkpoint, so "seen" and "changed" cannot come apart."""
