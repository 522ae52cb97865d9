"""How the options of a read-only command are read. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

import attrs

from novacode.authority.words import Word

__all__ = ["Found", "Usage", "read_usage"]


@attrs.frozen
class Found:
    """What a read-only command reads and writes, and the words that are no paths: patterns, scripts, filters."""

    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()


@attrs.frozen
class Usage:
    """The options of a command that keep it read-only.

    `flags` stand alone, `optional` may carry `=value`, `valued` need a value that is no path, `files` one that is.
    `patterns` need a value that takes the place of the first operand. The first `skip` operands are no paths, and
    more than `most` operands are refused. `required` is an option without which operands are refused. `numbers`
    allows `-20`. `first` is a regular expression each operand has to match.
    """

    flags: frozenset[str]
    optional: frozenset[str] = frozenset()
    valued: frozenset[str] = frozenset()
    files: frozenset[str] = frozenset()
    patterns: frozenset[str] = frozenset()
    skip: int = 0
    most: int | None = None
    required: str = ""
    numbers: bool = False
    first: str = ""
    text_only: bool = False

    @classmethod
    def of(cls, flags: str = "", **more: str | int | bool | None) -> Usage:
        """Return a usage from options written as one text each, separated by blanks."""
        sets = {"optional", "valued", "files", "patterns"}
        fields = {key: frozenset(str(value).split()) if key in sets else value for key, value in more.items()}
        return cls(frozenset(flags.split()), **fields)  # type: ignore[arg-type]

    @property
    def takes_value(self) -> frozenset[str]:
        """Every option that needs a value."""
        return self.valued | self.files | self.patterns


class _Reading:
    """One reading of a command's arguments."""

    def __init__(self, usage: Usage, arguments: Sequence[Word]) -> None:
        self.usage = usage
        self.rest = list(arguments)
        self.operands: list[Word] = []
        self.reads: list[str] = []
        self.patterns: list[str] = []
        self.seen: set[str] = set()

    def option(self, word: Word) -> str | None:
        """Take one word that begins with `-`; return why it is refused, or `None`."""
        text = word.value
        if word.glob:
            return f"`{word.source}` is a pattern and an option"
        if text in self.usage.flags or text in self.usage.optional:
            self.seen.add(text)
            return None
        if text in self.usage.takes_value:
            if not self.rest:
                return f"{text} lacks its value"
            return self.value(text, self.rest.pop(0))
        if self.usage.numbers and re.fullmatch(r"-\d+", text):
            return None
        if text.startswith("--"):
            return self.long(text)
        return self.cluster(text)

    def long(self, text: str) -> str | None:
        name, equals, value = text.partition("=")
        if equals and name in self.usage.optional | self.usage.takes_value:
            return self.value(name, Word(value, value, quoted=True))
        return f"the option {name} is not in the table"

    def cluster(self, text: str) -> str | None:
        """Take short options written together, the last perhaps with its value."""
        for index, letter in enumerate(text[1:], start=1):
            option = f"-{letter}"
            if option in self.usage.flags:
                self.seen.add(option)
            elif option in self.usage.takes_value:
                attached = text[index + 1 :]
                if attached:
                    return self.value(option, Word(attached, attached, quoted=True))
                return self.value(option, self.rest.pop(0)) if self.rest else f"{option} lacks its value"
            else:
                return f"the option {option} is not in the table"
        return None

    def value(self, option: str, word: Word) -> str | None:
        self.seen.add(option)
        if word.glob:
            return f"`{word.source}` may become an option"
        if option in self.usage.files:
            self.reads.append(word.path)
        if option in self.usage.patterns:
            self.patterns.append(word.value)
        return None


def read_usage(usage: Usage, arguments: Sequence[Word]) -> Found | str:
    """Return what a command of this usage reads, or why these arguments take it out of the table."""
    reading = _Reading(usage, arguments)
    options = True
    while reading.rest:
        word = reading.rest.pop(0)
        if options and word.value == "--":
            options = False
        elif options and word.value.startswith("-") and word.value != "-":
            refused = reading.option(word)
            if refused:
                return refused
        else:
            reading.operands.append(word)
    return _operands(usage, reading)


def _operands(usage: Usage, reading: _Reading) -> Found | str:
    operands = reading.operands
    if usage.most is not None and (len(operands) > usage.most or any(word.glob for word in operands)):
        return f"more than {usage.most} operands"
    if usage.required and operands and not reading.seen & set(usage.required.split()):
        return f"operands without {usage.required.split()[0]}"
    if usage.first and not all(re.fullmatch(usage.first, word.value) for word in operands):
        return "an operand that is not in the table"
    skip = 0 if reading.patterns else usage.skip
    if usage.text_only:
        skip = len(operands)
    skipped, paths = operands[:skip], operands[skip:]
    if not usage.text_only and any(word.glob for word in skipped):
        return f"`{skipped[0].source}` is a pattern of file names"
    return Found(
        reads=(*reading.reads, *(word.path for word in paths if word.value != "-")),
        skipped=tuple(word.value for word in skipped),
        patterns=tuple(reading.patterns),
    )
