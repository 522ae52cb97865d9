"""What the model is told about calls that did not simply succeed.

Each kind has words of its own: a parameter error, a refusal, a failed command and an interruption call for different
next steps, and "failed, please retry" for none of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from novacode.engine.groups import leaves_of
from novacode.tools.plain import plain
from novacode.values.parts import BrokenCall

__all__ = [
    "broken",
    "denied",
    "disabled",
    "hook_denied",
    "interrupted",
    "never_began",
    "raised",
    "skipped",
    "timed_out",
    "unjudged",
    "unknown_tool",
]


def unknown_tool(name: str, close: Sequence[str], all_names: Sequence[str]) -> str:
    """There is no tool of that name."""
    guess = f" Did you mean {' or '.join(close)}?" if close else ""
    return f"There is no tool named {name!r}.{guess} Available: {', '.join(all_names)}. Nothing was executed."


def disabled(name: str) -> str:
    """The tool exists and is switched off."""
    return f"The tool {name!r} is disabled in this run. Nothing was executed; do it another way or tell the user."


def hook_denied(reason: str) -> str:
    """A `pre_tool_use` hook said no."""
    return f"A hook refused this call: {reason or 'it gave no reason'}. Nothing was executed."


def denied(reason: str, words: str = "") -> str:
    """A rule or a person said no."""
    said = f' They said: "{words}".' if words else ""
    return f"Permission denied: {reason.rstrip('.')}.{said} Nothing was executed."


def unjudged(error: Exception) -> str:
    """The tool could not tell what the call would do, so nothing and nobody can allow it."""
    return (
        f"Permission denied: what this call would do could not be worked out ({_words(error)}). Nothing was executed."
    )


def broken(call: BrokenCall) -> str:
    """The arguments are not one JSON object."""
    return f"This call to {call.name!r} was not executed: {call.problem}"


def timed_out(seconds: float, output: str) -> str:
    """The deadline of the call passed."""
    return f"Timed out after {seconds:g} s and was stopped. What it did until then stays done." + _so_far(output)


def raised(error: Exception) -> str:
    """The tool raised something it should not have; the type helps whoever reads the log."""
    return f"The tool failed: {_words(error)}"


def interrupted(why: str, output: str) -> str:
    """The call had begun and was stopped."""
    return f"Started, then interrupted before it ended ({why}). What it did until then stays done." + _so_far(output)


def never_began(why: str) -> str:
    """The call was stopped before it began."""
    return f"Cancelled before it started ({why}). Nothing was executed."


def skipped(why: str) -> str:
    """A limit ended the run before the call began."""
    return f"Skipped: the run ended before this call could start ({why}). Nothing was executed."


def _words(error: Exception) -> str:
    if isinstance(error, ExceptionGroup):
        return "; ".join(_words(leaf) for leaf in leaves_of(error))
    return f"{type(error).__name__}: {error}"


def _so_far(output: str) -> str:
    """Live output comes raw from the command; the model gets it as it gets that of a command that ended."""
    return f"\nOutput so far:\n{plain(output)}" if output else " It had printed nothing."
