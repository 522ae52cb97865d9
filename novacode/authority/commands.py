"""From a shell line to the simple commands in it and what they seem to do.

Every simple command is judged on its own, wherever it stands: in pipes, lists, substitutions, here-documents,
subshells, functions and behind wrappers. What does not parse, and what depends on values that are only known when the
line runs, makes the line `unparsed`, which asks. The parser serves rules; it is no sandbox.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

import attrs

from novacode.authority import shfmt
from novacode.authority.analysis import Analysis, SimpleCommand
from novacode.authority.readonly import Found, judge
from novacode.authority.readonly_git import GIT_GLOBALS
from novacode.authority.walk import walk
from novacode.authority.words import Assign, Word, plain_words
from novacode.authority.wrappers import OPAQUE, Unwrapped, base_name, harmless_name, unwrap, wraps

__all__ = ["Parser", "analyse", "analyse_with"]

Parser = Callable[[str], Mapping[str, Any]]
"""From a line to its syntax tree; raises `shfmt.SyntaxRefused`."""

_DEEPEST = 5
_LONGEST = 20_000
# Tab and newline are the only control characters a shell gives a meaning; the others, blanks that only look like
# blanks and signs without a shape let what a person reads differ from what a shell does. Lone surrogates are no text.
_SEEN = frozenset(" \t\n")
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp", "Zs"})
# A shell takes a backslash and the newline behind it away before it sees what that joins: `$\` and `(x)` on the next
# line run x, where the parser sees a dollar sign and text. Between blanks there is nothing to be joined, but for the
# parser (3.14) a comment: `ls # \` and `rm x` are two commands to a shell and `ls rm x` to it.
_JOINED = re.compile(r"(?:^|[^ \t\\])(?:\\\\)*\\\n(?![ \t])|#[^\n]*\\\n")


@functools.lru_cache(maxsize=1024)
def analyse(line: str) -> Analysis:
    """Take `line` apart. Never raises. Starts the parser for lines that are not plain words (about 4 ms), so blocks."""
    program = shfmt.find()
    return analyse_with(line, None if program is None else functools.partial(shfmt.parse, program=program))


def analyse_with(line: str, parser: Parser | None) -> Analysis:
    """Take `line` apart with the given parser; without one only a line of plain words can be judged."""
    reader = _Reader(parser)
    try:
        reader.line(line)
    except (KeyError, TypeError, AttributeError, IndexError, RecursionError) as exc:
        # A parser of another version: what was read so far is kept for deny rules.
        reader.doubt(f"the syntax tree is not understood: {exc!r}")
    return reader.analysis()


class _Reader:
    """Collects what is found in one line. The sink of `walk`."""

    def __init__(self, parser: Parser | None) -> None:
        self._parser = parser
        self._depth = 0
        self._commands: list[SimpleCommand] = []
        self._reads: list[str] = []
        self._writes: list[str] = []
        self._doubts: list[str] = []
        self._shapes_names = ""
        self._folders: list[str] = []

    def line(self, line: str) -> None:
        """Take a line, or the text a shell within it is given."""
        if len(line) > _LONGEST:
            return self.doubt(f"the line is {len(line)} characters long; up to {_LONGEST} are judged")
        if any(sign not in _SEEN and unicodedata.category(sign) in _UNSEEN for sign in line):
            return self.doubt("the line has control characters or blanks that cannot be seen")
        if _JOINED.search(line):
            self.doubt("a backslash at the end of a line joins what only the shell sees as one; put a blank before it")
        if self._depth >= _DEEPEST:
            return self.doubt("commands within commands are too deep")
        self._depth += 1
        try:
            self._taken_apart(line)
        finally:
            self._depth -= 1
        return None

    def _taken_apart(self, line: str) -> None:
        words = plain_words(line)
        if words is not None:
            self.command([], words)
        elif line.strip() and self._parser is None:
            self.doubt("there is no shell parser (shfmt), so only lines of plain words can be judged")
        elif line.strip() and self._parser is not None:
            try:
                walk(self._parser(line), line.encode(), self)
            except shfmt.SyntaxRefused as exc:
                self.doubt(str(exc))

    # --- what `walk` calls ---

    def doubt(self, reason: str) -> None:
        self._doubts.append(reason)

    def redirect(self, path: str, *, writes: bool) -> None:
        (self._writes if writes else self._reads).append(path)

    def harmless(self, text: str) -> None:
        self._commands.append(SimpleCommand((text,), text, read_only=True, known=1))

    def other(self, text: str, reason: str, *, shapes_names: bool = False) -> None:
        if shapes_names:
            self._shapes_names = reason
        self._commands.append(
            SimpleCommand((text,), text, read_only=False, reason=reason, dynamic=bool(set(text) & set("$`")))
        )

    def command(self, assigns: Sequence[Assign], words: Sequence[Word], *, tail: bool = False) -> None:
        loud = [item for item in assigns if not _quiet(item, alone=not words)]
        if not words:
            if loud:
                self._shapes_names = f"the line sets {loud[0].name}"
                self._add(loud, [], "it sets a variable that may change what runs")
            return
        if not words[0].sure or not words[0].value:
            self.doubt(f"the command word {words[0].source or 'of no characters'} is not literal")
            self._add(loud, words, "its name is only known when it runs", tail=True)
            return
        if re.match(r"[A-Za-z_]\w*=", words[0].value):
            # `nice X=1 rm f` runs a program called `X=1`; who wrote that meant another, and so may some wrapper.
            self.doubt(f"the command word {words[0].source} looks like an assignment")
            self.command(assigns, words[1:], tail=tail)
        unwrapped = unwrap(words)
        if tail and wraps(words):
            self.doubt(f"{words[0].value} gets a command that is only known when it runs")
        if unwrapped is None:
            self._plain(loud, words, tail=tail)
        else:
            self._wrapped(loud, words, unwrapped, tail=tail)

    def _plain(self, loud: Sequence[Assign], words: Sequence[Word], *, tail: bool) -> None:
        found: Found | str = judge(words)
        if loud:
            found = f"it sets {loud[0].name}"
        elif tail:
            found = "it gets further words, which are only known when it runs"
        opaque = isinstance(found, str) and _opaque(words[0].value)
        self._add(loud, words, found, tail=tail, opaque=opaque)
        if base_name(words[0].value) == "cd" and isinstance(found, Found):
            self._folders.extend(found.reads)

    def _wrapped(self, loud: Sequence[Assign], words: Sequence[Word], unwrapped: Unwrapped, *, tail: bool) -> None:
        if unwrapped.doubt:
            self.doubt(unwrapped.doubt)
        name = words[0].value
        if loud or tail or not unwrapped.harmless or "/" in name:
            opaque = unwrapped.opaque or not (unwrapped.inner or unwrapped.code)
            self._add(loud, words, f"{name} runs other commands", tail=tail, opaque=opaque)
        for inner in unwrapped.inner:
            self.command([*loud, *unwrapped.assigns], inner, tail=tail or unwrapped.tail)
        for code in unwrapped.code:
            self.line(code)

    def _add(
        self,
        loud: Sequence[Assign],
        words: Sequence[Word],
        found: Found | str,
        *,
        tail: bool = False,
        opaque: bool = False,
    ) -> None:
        texts = [*(item.text for item in loud), *(word.text for word in words)]
        sure = [*(item.plain and item.value.sure for item in loud), *(word.sure for word in words)]
        known = sure.index(False) if False in sure else len(sure)
        what = found if isinstance(found, Found) else Found()
        self._commands.append(
            SimpleCommand(
                words=(*(item.text for item in loud), *(word.value for word in words)),
                text=" ".join(texts),
                read_only=isinstance(found, Found),
                reason="" if isinstance(found, Found) else found,
                reads=what.reads,
                writes=what.writes,
                forms=_forms(words),
                known=known,
                dynamic=tail or not all(item.plain and item.value.known for item in loud) or _dynamic(words),
                start=_start(words, tail=tail),
                opaque=opaque,
            )
        )

    # --- the end ---

    def analysis(self) -> Analysis:
        """Return what was found, with what the parts of the line do to each other."""
        commands = self._commands
        moved = [command for command in commands if command.words[:1] == ("cd",)]
        reason = self._shapes_names
        if not reason and len(moved) > 1:
            reason = "the line changes the folder more than once"
        if not reason and moved and any(base_name(command.words[0]) == "git" for command in commands if command.words):
            reason = "git in another folder runs what that folder's configuration says"
        if reason:
            commands = [_taken_out(command, reason) for command in commands]
        if self._folders:
            commands = [self._moved(command) for command in commands]
        doubts = "; ".join(dict.fromkeys(self._doubts))
        return Analysis(
            tuple(commands), self._also_below(self._reads), self._also_below(self._writes), unparsed=doubts or None
        )

    def _moved(self, command: SimpleCommand) -> SimpleCommand:
        if command.words[:1] == ("cd",):
            return command
        return attrs.evolve(command, reads=self._also_below(command.reads), writes=self._also_below(command.writes))

    def _also_below(self, paths: Sequence[str]) -> tuple[str, ...]:
        """Return the paths as seen from the workspace and from the folder that a `cd` may or may not have reached."""
        below = [
            str(PurePosixPath(folder) / path)
            for folder in self._folders
            for path in paths
            if not path.startswith(("/", "~"))
        ]
        return (*paths, *below)


def _quiet(assign: Assign, *, alone: bool) -> bool:
    """Whether an assignment may be left out of account: a plain literal value of a harmless name."""
    return assign.plain and assign.value.known and harmless_name(assign.name, alone=alone)


def _dynamic(words: Sequence[Word]) -> bool:
    return any(not word.known for word in words)


def _start(words: Sequence[Word], *, tail: bool) -> str | None:
    for index, word in enumerate(words):
        if not word.sure:
            return " ".join([base_name(words[0].value) if index else "", *(one.value for one in words[1:index])])
    return " ".join([base_name(words[0].value), *(one.value for one in words[1:])]) if tail and words else None


def _opaque(name: str) -> bool:
    name = base_name(name)
    return name in OPAQUE or re.fullmatch(r"(?:python|pypy|perl|ruby|php|lua|node)[\d.]*", name) is not None


def _taken_out(command: SimpleCommand, reason: str) -> SimpleCommand:
    return attrs.evolve(command, read_only=False, reason=reason) if command.read_only else command


def _forms(words: Sequence[Word]) -> tuple[str, ...]:
    """Return further spellings of a command for deny and ask rules: unquoted, without folder, git without options."""
    if not words:
        return ()
    values = [word.value for word in words]
    named = [base_name(values[0]), *values[1:]]
    forms = [values, named]
    if named[0] == "git":
        rest = values[1:]
        while rest and rest[0].startswith("-"):
            takes_value = rest[0] in {"-c", "-C", "--git-dir", "--work-tree", "--namespace", "--exec-path"}
            rest = rest[2 if takes_value and rest[0] not in GIT_GLOBALS else 1 :]
        forms.append(["git", *rest])
    return tuple(dict.fromkeys(" ".join(form) for form in forms))
