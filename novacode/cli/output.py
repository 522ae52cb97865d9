"""The four output formats of `novacode run`, as one thing to subscribe and one thing to say at the end."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

import attrs

from novacode.cli.result import ResultWatch, build_result, failure_result
from novacode.cli.stdout import Stdout
from novacode.cli.text_output import answer_bytes
from novacode.engine.bus import Sink
from novacode.sessions.record import json_line
from novacode.values.events import RunEnded, RunStatus
from novacode.values.parts import JSON

if TYPE_CHECKING:
    from novacode.cli.stream_json import Init

__all__ = ["FORMATS", "Format", "Output"]

Format = Literal["text", "json", "stream-json", "events"]
FORMATS: Sequence[Format] = ("text", "json", "stream-json", "events")

_AT_LAST = 0.5  # seconds in which a reader that reads at all takes one more line


@attrs.define(eq=False, repr=False)
class Output:
    """What goes to standard output. `watch` is subscribed too, and remembers what the result object needs.

    `already_shown` is whether a face has drawn the answer; on the same terminal it is then not printed once more.
    """

    format: Format
    stdout: Stdout
    include_partial: bool = False
    fail_on_denial: bool = False
    watch: ResultWatch = attrs.field(factory=ResultWatch)
    already_shown: bool = False

    def sinks(self, init: Callable[[], Init], *, canonical: bool, timed: bool = True) -> tuple[Sink, ...]:
        """Return what to subscribe. `canonical` gives events the order that does not depend on the scheduler.

        `init` makes what the first line says, where the format has one; `timed` is whether what calls take is the same
        in every run, too.
        """
        match self.format:
            case "stream-json":
                from novacode.cli.stream_json import StreamJson  # lazy, as the other: 2 ms that one format pays

                return (self.watch, StreamJson(self.stdout.write, init(), include_partial=self.include_partial))
            case "events":
                from novacode.cli.events_json import EventsJson

                return (self.watch, EventsJson(self.stdout.write, canonical=canonical, timed=timed))
            case "text" | "json":
                return (self.watch,)

    def finish(self, outcome: RunEnded | BaseException, session_id: str) -> None:
        """Say how it ended: there is a result object on every path, on stderr where stdout is gone."""
        if self.format == "text":
            terminal = sys.stdout is not None and sys.stdout.isatty()
            if isinstance(outcome, RunEnded) and not (terminal and self.already_shown):
                self.stdout.write(answer_bytes(outcome, terminal=terminal))
        elif self.format != "events" or not isinstance(outcome, RunEnded):
            line = json_line(self._result(outcome, session_id))
            self.stdout.write(line)
            if self.stdout.broken and sys.stderr is not None:
                sys.stderr.write(line.decode("utf-8", "replace"))

    def denied(self, outcome: RunEnded | BaseException) -> bool:
        """Whether a run that was completed is a failure all the same, since a call was denied and that was to count."""
        completed = isinstance(outcome, RunEnded) and outcome.status is RunStatus.COMPLETED
        return self.fail_on_denial and completed and bool(self.watch.denials)

    def give_up(self, reason: str, session_id: str, survivors: Sequence[int] = ()) -> None:
        """Say how it ended where nothing is waited for any more, and hand it on for half a second at most.

        Synchronous: no event loop takes part, which may not even run yet.
        """
        if self.format != "text":
            self.stdout.write(json_line(self._result(self.watch.cut_short(reason, survivors), session_id)))
        self.stdout.hurry(_AT_LAST)

    def _result(self, outcome: RunEnded | BaseException, session_id: str) -> dict[str, JSON]:
        if isinstance(outcome, RunEnded):
            made = build_result(outcome, self.watch, session_id)
            return made | {"subtype": "error_denied", "is_error": True} if self.denied(outcome) else made
        return failure_result(outcome, session_id, self.watch)
