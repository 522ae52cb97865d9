"""Which read-only commands read whole folders, and so what no path in their words names. Pure."""

from __future__ import annotations

from novacode.authority.analysis import SimpleCommand
from novacode.authority.wrappers import base_name

__all__ = ["searched"]

_GREPS = frozenset({"grep", "egrep", "fgrep"})


def searched(command: SimpleCommand) -> tuple[str, ...]:
    """Return the paths whose content the command reads, with all that lies below; none for other commands.

    Those that only list names are others. `git diff` and the like, which read what git keeps, are others too.
    """
    if not command.read_only or not command.words:
        return ()
    name, options = base_name(command.words[0]), command.words[1:]
    if name in _GREPS:
        return command.reads or ((".",) if any(map(_recurses, options)) else ())
    if name == "rg" or (name == "git" and "grep" in options):
        return command.reads or (".",)
    return command.reads if name == "diff" else ()


def _recurses(option: str) -> bool:
    return option in {"--recursive", "recurse"} or (option[:1] == "-" and option[:2] != "--" and "r" in option)
