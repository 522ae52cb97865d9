"""Asking a person at a terminal whether a call may run.

What is shown is what will run: the call as hooks have left it, every argument in full or with a word about what was
cut, and every character that acts or hides made visible. An answer counts for the question it was given to: keys typed
before it was shown are thrown away, and no answer, or one that is not understood, means no.
"""

from __future__ import annotations

import json
import os
import termios
from collections.abc import Callable
from typing import Literal, Protocol

import attrs
import trio

from novacode.cli.escape import visible
from novacode.cli.outlet import Outlet
from novacode.values.events import ApprovalAsked
from novacode.values.parts import JSON

__all__ = ["Decision", "Pausable", "TerminalAsker", "Word"]

Word = Literal["once", "session", "always", "no", "stop"]

_TRIES = 3
_MOST_LINES = 400
_LONGEST_LINE = 4000
_KEYS: dict[str, Word] = {
    "y": "once",
    "yes": "once",
    "s": "session",
    "session": "session",
    "a": "always",
    "always": "always",
    "n": "no",
    "no": "no",
    "q": "stop",
    "quit": "stop",
    "stop": "stop",
}


@attrs.frozen
class Decision:
    """What the person said.

    `words` are for the model; `rule` is what to keep with `session` and `always`, one rule a line, as they left it.
    """

    word: Word
    words: str = ""
    rule: str = ""


class Pausable(Protocol):
    """A face that can keep still while somebody else uses the terminal."""

    async def suspend(self) -> None:
        """Stop drawing."""
        ...

    def resume(self) -> None:
        """Draw again."""
        ...


class TerminalAsker:
    """Asks on `outlet` and reads lines from the terminal `fd`, one question at a time.

    `check` says what is wrong with a rule, in words; empty where it is right. `kept_in` names the file for good ones.
    """

    def __init__(
        self, fd: int, outlet: Outlet, face: Pausable, check: Callable[[str], str], kept_in: str = "your settings"
    ) -> None:
        self._kept_in = kept_in
        self._fd = fd
        self._outlet = outlet
        self._face = face
        self._check = check
        self._turn = trio.Lock()  # first come, first asked

    async def ask(self, asked: ApprovalAsked) -> Decision:
        """Show the question and return the answer. Cancelling withdraws it and leaves the terminal as it was.

        Where `fd` is no terminal nothing is shown or read: the answer is no.
        """
        if not os.isatty(self._fd):
            return Decision("no", "nobody could be asked: there is no terminal")
        async with self._turn:
            await self._face.suspend()
            try:
                return await self._asked(asked)
            except trio.Cancelled:
                self._outlet.write("\n(the question is withdrawn)\n")
                self._outlet.drain_now()
                raise
            finally:
                self._face.resume()

    async def _asked(self, asked: ApprovalAsked) -> Decision:
        termios.tcflush(self._fd, termios.TCIFLUSH)
        await self._say(question_text(asked))
        for _ in range(_TRIES):
            await self._say(_prompt(asked.rule))
            line = await self._line()
            if line is None:
                await self._say("\n")
                return Decision("no", "they closed the input without an answer")
            key, _, words = line.strip().partition(" ")
            word = _KEYS.get(key.lower())
            if words.strip() and word not in ("no", "stop"):
                word = None  # "yes, but not the last one" allows nothing: what is asked about runs whole or not at all
            if word in ("session", "always") and asked.rule:
                rule = await self._rule(asked.rule, word)
                if rule is None:
                    continue
                return Decision(word, rule=rule)
            if word == "once":
                return Decision(word)
            if word in ("no", "stop"):
                return Decision(word, words.strip())
            await self._say(f"{visible(line.strip())!r} is not one of the answers.\n" if line.strip() else "")
        return Decision("no", "the answer was not understood")

    async def _rule(self, rule: str, word: Word) -> str | None:
        """Show the rule that would be kept and let the person change it. `None` takes the answer back."""
        how_long = "for this session" if word == "session" else f"for good, in {visible(self._kept_in)}"
        await self._say("\n".join([f"  This allows, {how_long}:", *(f"    {one}" for one in _rules(rule))]) + "\n")
        for _ in range(_TRIES):
            await self._say("  Enter to accept, or another rule to keep instead, or - to go back: ")
            line = await self._line()
            if line is None or line.strip() == "-":
                return None
            chosen = line.strip() or rule
            if not (problem := self._check(chosen)):
                return chosen
            await self._say(f"  {visible(problem)}\n")
        return None

    async def _line(self) -> str | None:
        """Return the next line, `None` at the end of input. A checkpoint; takes nothing when cancelled.

        The terminal is in its line mode, so it is readable when a whole line is there, and one read takes it.
        """
        await trio.lowlevel.wait_readable(self._fd)
        try:
            data = os.read(self._fd, 65536)
        except OSError:  # EIO: the terminal has hung up
            return None
        return data.decode("utf-8", "replace") if data else None

    async def _say(self, text: str) -> None:
        self._outlet.write(text)
        await self._outlet.drain()


def question_text(asked: ApprovalAsked) -> str:
    """Return the question as it is shown, without the line that takes the answer."""
    lines = [f"\nAllow {visible(asked.call.name)}?  {visible(asked.reason)}"]
    for name, value in asked.call.arguments.items():
        lines += _field(visible(name), value)
    if asked.details:
        lines += ["  details:", *_block(asked.details)]
    return "\n".join(lines) + "\n"


def _field(name: str, value: JSON) -> list[str]:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if "\n" not in text and len(text) <= 60:
        return [f"  {name}: {visible(text)}"]
    return [f"  {name}:", *_block(text)]


def _block(text: str) -> list[str]:
    """Return `text` line by line behind a bar, so that nothing in it can pass for a part of the question."""
    lines = visible(text).split("\n")
    shown = []
    for line in lines[:_MOST_LINES]:
        cut = len(line) - _LONGEST_LINE
        shown.append(f"  | {line[:_LONGEST_LINE]}" + (f" [CUT: {cut} more characters]" if cut > 0 else ""))
    if len(lines) > _MOST_LINES:
        shown.append(f"  [CUT: {len(lines) - _MOST_LINES} more lines are not shown]")
    return shown


def _rules(rule: str) -> list[str]:
    """Return the rules one by one, each visible: a call that touches several things can need more than one."""
    return [visible(line) for line in rule.splitlines()]


def _prompt(rule: str) -> str:
    always = f"s session, a always ({', '.join(_rules(rule))}), " if rule else ""
    return f"y once, {always}n no (words after it go to the model), q stop the run: "
