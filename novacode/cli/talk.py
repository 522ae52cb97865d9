"""A session at a terminal: prompt after prompt, and what signals mean between and during its runs.

Ctrl-C during a run stops the run; again, and nothing is waited for any more. At the prompt it takes back what was
typed. Within two seconds of another one, also of one that has stopped a run, it ends the chat. SIGTERM and SIGHUP end
it as soon as everything is reaped.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable
from functools import partial

import trio

from novacode.app.wiring import App
from novacode.cli.escape import visible
from novacode.cli.faces import Faces
from novacode.cli.outlet import Outlet
from novacode.cli.reading import Key, Reader
from novacode.cli.slash import Commands, Compact, Quit, Reopen
from novacode.cli.stdout import Stdout
from novacode.cli.text_output import answer_bytes, failure_text
from novacode.errors import NovaError
from novacode.values.events import RunEnded, RunStatus

__all__ = ["Talk"]

_AGAIN = 2.0
"""Seconds in which a second Ctrl-C belongs to the first."""

_CODES = {"SIGHUP": 129, "SIGPIPE": 141, "SIGTERM": 143}
_INTERRUPTED = 130


class Talk:
    """One opened session and the person at the terminal. Make it inside the event loop, and call `run` once."""

    def __init__(self, app: App, shown: Faces, reader: Reader, outlet: Outlet, stdout: Stdout) -> None:
        self._app = app
        self._shown = shown
        self._reader = reader
        self._outlet = outlet
        self._stdout = stdout
        self._commands = Commands(app)
        self._reading: trio.CancelScope | None = None
        self._code: int | None = None  # set once the chat is to end
        self._last_interrupt = -_AGAIN
        self._stop, self._hurry = app.ladder.first, app.ladder.second
        app.ladder.each, app.ladder.first, app.ladder.second = self._told, self._first, self._second
        # Asked now: a terminal that has hung up says that it is none.
        stdout.on_broken = partial(self._gone, "SIGHUP" if os.isatty(1) else "SIGPIPE")

    async def run(self) -> int | Reopen:
        """Talk to the end and return the exit code; or with which session to go on, where another one is wanted."""
        said = ""
        while self._code is None:
            text = said or await self._prompt()
            said = ""
            outcome = self._commands.take(text) if text else ""
            match outcome:
                case None:
                    said = await self._work(partial(self._app.agent.run, text))
                case Compact(wanted):
                    said = await self._work(partial(self._app.agent.compact, wanted))
                case str():
                    await self._say(outcome)
                case Quit():
                    self._code = 0
                case Reopen():
                    return outcome
        return self._code

    async def _prompt(self) -> str:
        """Return what the person says; empty where it was taken back, or the chat is to end."""
        await self._shown.face.suspend()
        if self._code is not None:
            return ""
        answer: str | Key = Key.INTERRUPT
        signalled = True
        try:
            with trio.CancelScope() as self._reading:
                answer = await self._reader.read()
                signalled = False
        finally:
            self._reading = None
        match answer:
            case str():
                return answer.strip("\n") if answer.strip() else ""
            case Key.END:
                self._code = 0
            case Key.GONE:
                self._code = _CODES["SIGHUP"]
            case Key.INTERRUPT:
                if not signalled:
                    self._interrupted()
                if self._code is None:
                    await self._say("\n" * signalled + "(Ctrl-C again within 2 seconds, or Ctrl-D, ends the chat)\n")
        return ""

    async def _work(self, work: Callable[[], Awaitable[RunEnded]]) -> str:
        """Do a run, and return what the person said instead while it was under way; mostly nothing."""
        face, approver = self._shown.face, self._shown.approver
        face.resume()
        try:
            ended = await work()
        except NovaError as error:
            face.say(f"novacode: {visible(str(error))}")
            return ""
        finally:
            self._app.ladder.reset()
        if said := failure_text(ended):
            face.say(said)
        await face.suspend()
        await self._answer(ended)
        if ended.status is not RunStatus.CANCELLED or approver is None:
            return ""
        said, approver.said_next = approver.said_next, ""
        if said:
            await self._say(f"> {visible(said)}\n")
        return said

    async def _answer(self, ended: RunEnded) -> None:
        """Hand the answer on where no face has shown it: to a pipe, and to a terminal that cannot draw."""
        terminal = sys.stdout is not None and sys.stdout.isatty()
        if not (terminal and self._shown.draws_answers):
            self._stdout.write(answer_bytes(ended, terminal=terminal))
            await self._stdout.drain()

    def _told(self, signal_name: str) -> None:
        """Note what the signal means for the chat, whatever it means for a run that is under way."""
        if signal_name in _CODES:
            self._code = _CODES[signal_name]

    def _first(self, signal_name: str) -> None:
        if self._app.agent.active is not None:
            self._last_interrupt = trio.current_time()
            self._stop(signal_name)
            return
        self._app.ladder.reset()
        if signal_name not in _CODES:
            self._interrupted()
        if self._reading is not None:
            self._reading.cancel()

    def _second(self) -> None:
        self._last_interrupt = trio.current_time()
        self._hurry()

    def _interrupted(self) -> None:
        """Take a Ctrl-C at the prompt: the second of two ends the chat."""
        now = trio.current_time()
        if now - self._last_interrupt <= _AGAIN:
            self._code = _INTERRUPTED
        self._last_interrupt = now

    def _gone(self, signal_name: str) -> None:
        """End the chat: nobody sees it any more."""
        self._code = _CODES[signal_name]
        self._app.agent.cancel(signal_name)
        if self._reading is not None:
            self._reading.cancel()

    async def _say(self, text: str) -> None:
        if text:
            self._outlet.write(text if text.endswith("\n") else f"{text}\n")
            await self._outlet.drain()
