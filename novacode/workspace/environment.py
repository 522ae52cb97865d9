"""The environment a command runs in: ours, without secrets, and made for a program that nobody is watching."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

__all__ = ["MARKER", "QUIET", "command_environment", "is_provider_key"]

MARKER = "NOVACODE_CALL"
"""The variable by which everything a command has started is found again."""

QUIET: Mapping[str, str] = {
    # A pager, an editor or a question would wait for a key that nobody presses.
    "PAGER": "cat",
    "MANPAGER": "cat",
    "SYSTEMD_PAGER": "cat",
    "GIT_PAGER": "cat",
    "EDITOR": "true",
    "VISUAL": "true",
    "GIT_EDITOR": "true",
    "GIT_SEQUENCE_EDITOR": "true",
    "GIT_TERMINAL_PROMPT": "0",
    "GCM_INTERACTIVE": "never",
    "SSH_ASKPASS_REQUIRE": "never",
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_NO_INPUT": "1",
    "TERM": "dumb",
    "NO_COLOR": "1",
}

# Programs that ask in a window, and what describes or colours a terminal the command does not have.
_DROPPED = frozenset(
    {
        "GIT_ASKPASS",
        "SSH_ASKPASS",
        "SUDO_ASKPASS",
        "CLICOLOR_FORCE",
        "FORCE_COLOR",
        "COLORTERM",
        "COLUMNS",
        "LINES",
        "OLDPWD",
    }
)


def is_provider_key(name: str) -> bool:
    """Whether a variable of this name looks like the key of a model provider, which a command has no use for."""
    return name.upper().endswith(("_API_KEY", "_API_TOKEN")) or name in {"ANTHROPIC_AUTH_TOKEN", "NOVACODE_TOKEN"}


def command_environment(
    ours: Mapping[str, str], extra: Mapping[str, str], *, cwd: Path, marker: str, drop: Callable[[str], bool]
) -> dict[str, str]:
    """Return the environment of a command that runs in `cwd`: `ours` cleaned, then `extra`, then the marker.

    `drop` is asked about each of `ours` and not about `extra`: what a caller names it means.
    """
    kept = {name: value for name, value in ours.items() if name not in _DROPPED and not drop(name)}
    return {**kept, **QUIET, "PWD": str(cwd), **extra, MARKER: marker}
