"""Words of a shell line, and the lexer for lines so plain that no shell grammar is needed. Pure."""

from __future__ import annotations

import re
import shlex

import attrs

__all__ = ["RESERVED", "Assign", "Word", "names", "plain_words"]


@attrs.frozen
class Word:
    """One word. `value` is what the program gets where `known`; else it is how the word is written.

    `glob` tells that it is a file name pattern, which is known but may become several words. `single` tells that it is
    exactly one word whatever it becomes. `source` is how it is written, `quoted` whether it begins with a quote.
    """

    value: str
    source: str
    known: bool = True
    glob: bool = False
    single: bool = True
    quoted: bool = False

    @property
    def sure(self) -> bool:
        """Whether the program gets exactly `value`."""
        return self.known and not self.glob

    @property
    def text(self) -> str:
        """The canonical spelling: the same for every way of quoting the same value."""
        if not self.sure or (self.value.startswith("~") and not self.quoted):
            return self.source
        return shlex.quote(self.value)

    @property
    def path(self) -> str:
        """The value as a path: a quoted `~` is an ordinary character."""
        return f"./{self.value}" if self.quoted and self.value.startswith("~") else self.value


@attrs.frozen
class Assign:
    """`NAME=value` in front of a command or alone. `plain` is false for `+=`, subscripts and arrays."""

    name: str
    value: Word
    plain: bool = True

    @property
    def text(self) -> str:
        """The canonical spelling."""
        return f"{self.name}={self.value.text if self.value.value or not self.value.known else ''}"


def names(text: str) -> frozenset[str]:
    """Return the words of `text` as a set: tables are read as they would be said."""
    return frozenset(text.split())


RESERVED = names(
    "! [[ ]] case coproc declare do done elif else esac export fi for function if in let local nameref "
    "readonly select then time typeset until while"
)
"""First words that are grammar and not a command; lines that begin with one are not plain."""

# ASCII only, and nothing that any shell expands, redirects or ends a command with, bare or in double quotes.
# What may stand between quotes is listed: to leave all of Unicode out of a set, by naming it, takes the compiler of
# regular expressions 14 ms. Compiled where a command comes: 2 ms of every start otherwise.
_PLAIN = r"""(?:[A-Za-z0-9_\-./:=,@%+]|'[ -&(-\[\]-~]*'|"[ #%-\[\]-_a-~]*")+"""
_QUOTED = r"""'([^']*)'|"([^"]*)"|([^'"]+)"""


def plain_words(line: str) -> tuple[Word, ...] | None:
    """Return the words of a line that is one simple command of plain words, or `None` where it is anything else.

    A bare word that begins like an assignment or is grammar in front is not plain, nor is any `~` or pattern.
    """
    line = line.strip(" \t")
    words: list[Word] = []
    position = 0
    while position < len(line):
        found = re.compile(_PLAIN).match(line, position)
        if found is None:
            return None
        source = found.group()
        value = "".join("".join(groups) for groups in re.findall(_QUOTED, source))
        words.append(Word(value, source, quoted=source[0] in "'\""))
        position = found.end()
        blank = re.compile(r"[ \t]+").match(line, position)
        if blank is None and position < len(line):
            return None
        position = blank.end() if blank else position
    if not words or words[0].source in RESERVED or re.match(r"[A-Za-z_]\w*\+?=", words[0].source):
        return None
    return tuple(words)
