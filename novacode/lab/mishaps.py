"""What can go wrong in the world, and must not go wrong in the runtime: failing tools, lost streams, odd clocks."""

from __future__ import annotations

import enum

import attrs

from novacode.errors import UsageError

__all__ = ["NO_MISHAP", "Mishap", "MishapKind", "parse_mishap"]


class MishapKind(enum.StrEnum):
    """The kinds. All but the slow clean-up happen once, to the n-th of what they concern."""

    NONE = ""
    TOOL_RAISES = "tool-raises"
    CUT = "cut"
    HOOK_CRASH = "hook-crash"
    SLOW_CLEANUP = "slow-cleanup"
    CLOCK_JUMP = "clock-jump"


@attrs.frozen
class Mishap:
    """One thing that goes wrong, to the thing number `at`, counted through the whole run from 1.

    The tool that is entered raises, the stream breaks off in place of the chunk, the hook crashes, the clock jumps an
    hour ahead before the chunk. Slow clean-up concerns every tool, and counts nothing.
    """

    kind: MishapKind = MishapKind.NONE
    at: int = 0

    def hits(self, kind: MishapKind, count: int) -> bool:
        """Whether this is what goes wrong now."""
        return self.kind is kind and self.at == count

    @property
    def name(self) -> str:
        """As it is written on the command line: `cut@3`, `slow-cleanup`, or nothing."""
        return f"{self.kind}@{self.at}" if self.at else self.kind.value


NO_MISHAP = Mishap()


def parse_mishap(text: str) -> Mishap:
    """Return the mishap that `text` names. Raises `UsageError`."""
    word, _, at = text.partition("@")
    kinds = ", ".join(kind for kind in MishapKind if kind)
    if word not in set(MishapKind):
        raise UsageError(f"{text!r} is not a mishap; use one of {kinds}, with @N for the N-th, or all")
    kind = MishapKind(word)
    counted = kind not in (MishapKind.NONE, MishapKind.SLOW_CLEANUP)
    if counted != bool(at) or (at and not (at.isascii() and at.isdigit() and int(at) > 0)):
        expected = f"{word}@N with a number from 1 on" if counted else f"{word!r} alone"
        raise UsageError(f"the mishap {text!r} is to be written as {expected}")
    return Mishap(kind, int(at or 0))
