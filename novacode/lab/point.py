"""A point: one run of one scenario under one schedule, stopped at one step. And what the lab writes down about it."""

from __future__ import annotations

import enum
import shlex
from collections.abc import Mapping
from typing import Any

import attrs

from novacode.lab.schedule import Kind

__all__ = ["How", "Point", "Row", "Violation"]


class How(enum.StrEnum):
    """How a run is stopped: as Ctrl-C does, from a scope around it, one call of it, a call and then the run, a crash.

    A crash is the death of the process: nothing that comes after it counts, and a new run goes on from the journal.
    """

    RUN = "run"
    OUTSIDE = "outside"
    CALL = "call"
    BOTH = "both"
    CRASH = "crash"


@attrs.frozen
class Point:
    """Everything that makes a run what it is. `step` counts from 1; `None` lets the run go to its own end.

    `call` is the id of the call to stop, empty for one of those under way, a different one from step to step.
    `mishap` is what goes wrong in the world, `fault` what is broken in the runtime on purpose.
    """

    scenario: str
    seed: int = 0
    schedule: Kind = Kind.UNIFORM
    how: How = How.RUN
    step: int | None = None
    call: str = ""
    mishap: str = ""
    fault: str = ""

    @property
    def command(self) -> str:
        """The command line that does exactly this again."""
        words = ["novacode", "lab", "explore", self.scenario, "--seed", str(self.seed), "--schedule", self.schedule]
        words += ["--how", self.how, "--step", "0" if self.step is None else str(self.step)]
        for option in ("call", "mishap", "fault"):
            if value := getattr(self, option):
                words += [f"--{option}", value]
        return shlex.join(words)


@attrs.frozen
class Violation:
    """Something that must never be: `kind` names the invariant, `text` says what was found."""

    kind: str
    text: str


@attrs.frozen
class Row:
    """What is written down about a point; `docs/lab.md` explains each field. Times are seconds of virtual time."""

    point: Point
    steps: int
    status: str
    reason: str
    violations: tuple[Violation, ...] = ()
    struck_at: float | None = None
    quiet_at: float | None = None
    phase: str = ""
    struck_call: str = ""
    alive: int = 0
    outcomes: Mapping[str, int] = attrs.field(factory=dict)
    trace: str = ""

    @property
    def latency_s(self) -> float | None:
        """From the request to quiet; `None` where nothing was struck."""
        if self.struck_at is None or self.quiet_at is None:
            return None
        return round(self.quiet_at - self.struck_at, 9)

    def dump(self) -> dict[str, Any]:
        """Return it as one flat JSON object."""
        return {
            **{key: value for key, value in attrs.asdict(self.point).items() if key != "call"},
            "steps": self.steps,
            "status": self.status,
            "reason": self.reason,
            "violations": [attrs.asdict(violation) for violation in self.violations],
            "struck_at": self.struck_at,
            "quiet_at": self.quiet_at,
            "latency_s": self.latency_s,
            "phase": self.phase,
            "call": self.struck_call or self.point.call,
            "chosen_call": bool(self.point.call),
            "alive": self.alive,
            "outcomes": dict(self.outcomes),
            "trace": self.trace,
            **({"command": self.point.command} if self.violations else {}),
        }

    @classmethod
    def load(cls, data: Mapping[str, Any]) -> Row:
        """Return the row that `dump` wrote. Raises `KeyError`, `TypeError` or `ValueError` for anything else."""
        return cls(
            point_of(data),
            steps=data["steps"],
            status=data["status"],
            reason=data["reason"],
            violations=tuple(Violation(item["kind"], item["text"]) for item in data["violations"]),
            struck_at=data["struck_at"],
            quiet_at=data["quiet_at"],
            phase=data["phase"],
            struck_call=data["call"],
            alive=data["alive"],
            outcomes=data["outcomes"],
            trace=data["trace"],
        )


def point_of(data: Mapping[str, Any]) -> Point:
    """Return the point that a row, as JSON data, is about."""
    return Point(
        data["scenario"],
        data["seed"],
        Kind(data["schedule"]),
        How(data["how"]),
        data["step"],
        data["call"] if data["chosen_call"] else "",
        data["mishap"],
        data["fault"],
    )
