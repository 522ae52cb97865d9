"""What is known of a shell line: the values `commands.analyse` makes and the policy judges. Pure."""

from __future__ import annotations

import attrs

__all__ = ["HARMLESS_TARGETS", "Analysis", "SimpleCommand"]

HARMLESS_TARGETS = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr"})
"""Files that a redirection may write or read without anybody being asked."""


@attrs.frozen
class SimpleCommand:
    """One command of a line, wherever in the line it stands.

    `words` are what the program gets, as far as known: the first `known` of them exactly, the others as they are
    written. `dynamic` tells that the rest, or its number, is only known when the line runs. `text` is the canonical
    spelling that allow rules are matched against; `forms` are further spellings that name the same program, which
    deny and ask rules see as well; `start` is what stands in front of the first word that is not literal, `None`
    where all are. `read_only` is true where the table of read-only commands has it with these options, else `reason`
    says why not. `reads` and `writes` are the paths in its words, where they are understood. `opaque` tells that it
    runs code which this analysis cannot see (an interpreter, a container, another machine).
    """

    words: tuple[str, ...]
    text: str
    read_only: bool
    reason: str = ""
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    forms: tuple[str, ...] = ()
    known: int = 0
    dynamic: bool = False
    start: str | None = None
    opaque: bool = False


@attrs.frozen
class Analysis:
    """A shell line taken apart. `commands` are in the order they are written, those inside of others last.

    `unparsed` is why the line cannot be judged as a whole, or `None`: it does not parse, a command word is not
    literal, it defines a function. What could be read of it is in the other fields all the same, so that deny rules
    see as much as there is to see. `redirect_reads` and `redirect_writes` are the targets of redirections.
    """

    commands: tuple[SimpleCommand, ...] = ()
    redirect_reads: tuple[str, ...] = ()
    redirect_writes: tuple[str, ...] = ()
    unparsed: str | None = None

    @property
    def reads(self) -> tuple[str, ...]:
        """Every path it is known to read, as written, without repetitions."""
        own = [path for command in self.commands for path in command.reads]
        return tuple(dict.fromkeys([*own, *self.redirect_reads]))

    @property
    def writes(self) -> tuple[str, ...]:
        """Every path it is known to write, as written, without repetitions and harmless devices."""
        own = [path for command in self.commands for path in command.writes]
        return tuple(path for path in dict.fromkeys([*own, *self.redirect_writes]) if path not in HARMLESS_TARGETS)

    @property
    def read_only(self) -> bool:
        """Whether it is known to change nothing. Says nothing about where it reads."""
        return self.unparsed is None and not self.writes and all(command.read_only for command in self.commands)
