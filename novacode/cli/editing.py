"""Reading prompts with a line editor: history, several lines, pastes in one piece. The one module with prompt_toolkit.

prompt_toolkit brings an event loop of its own, so it has a thread for as long as a prompt is being typed, and none
while a run is under way.
"""

from __future__ import annotations

import asyncio  # noqa: TID251 - the editor's own loop, in the editor's own thread
import sys
import termios
from collections.abc import Sequence
from contextlib import suppress

import trio
from prompt_toolkit import PromptSession
from prompt_toolkit.application import Application
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import has_focus
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import create_output

from novacode.cli.reading import Key

__all__ = ["EditorReader"]


class EditorReader:
    """Reads from the terminal on standard input, and draws on standard error. `history` is what arrow-up gives."""

    def __init__(self, history: Sequence[str] = ()) -> None:
        self._session: PromptSession[str] = PromptSession(
            "> ",
            multiline=True,
            key_bindings=_bindings(),
            prompt_continuation=". ",
            history=InMemoryHistory(history),
            enable_suspend=True,
            output=create_output(stdout=sys.stderr),
        )

    async def read(self) -> str | Key:
        """Return the next prompt; see `Reader`. Cancelled, it returns when the editor has left the terminal."""
        leaving = _Leaving(self._session.app)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(leaving.when_cancelled)
            answer = await trio.to_thread.run_sync(self._prompt, leaving)
            nursery.cancel_scope.cancel()
        return answer

    def _prompt(self, leaving: _Leaving) -> str | Key:
        """Run the editor; in its thread."""
        try:
            return self._session.prompt(pre_run=leaving.check, handle_sigint=False, set_exception_handler=False)
        except KeyboardInterrupt:
            return Key.INTERRUPT
        except EOFError:
            return Key.END
        except (OSError, termios.error):  # it could not be read, written or set to the editor's modes
            return Key.GONE


class _Leaving:
    """Ends an editor from another thread, also one that has not begun."""

    def __init__(self, app: Application[str]) -> None:
        self._app = app
        self._wanted = False
        self._loop: asyncio.AbstractEventLoop | None = None

    async def when_cancelled(self) -> None:
        """Wait to be cancelled, and have the editor end then."""
        try:
            await trio.sleep_forever()
        finally:
            self._wanted = True
            if self._loop is not None:
                with suppress(RuntimeError):  # it has ended, and its loop is closed
                    self._loop.call_soon_threadsafe(self._exit)

    def check(self) -> None:
        """Note the loop, and end at once where that was wanted before there was one. In the editor's thread."""
        self._loop = self._app.loop
        if self._wanted and self._loop is not None:
            self._loop.call_soon(self._exit)

    def _exit(self) -> None:
        if self._app.is_running and self._app.future is not None and not self._app.future.done():
            self._app.exit(exception=EOFError)


def _bindings() -> KeyBindings:
    """Return the keys: Enter sends, but goes on after a backslash; Escape and Enter begin a new line."""
    keys = KeyBindings()
    typing = has_focus(DEFAULT_BUFFER)

    @keys.add("enter", filter=typing)
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        before = buffer.document.text_before_cursor
        if not buffer.document.text_after_cursor and (len(before) - len(before.rstrip("\\"))) % 2:
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
        else:
            buffer.validate_and_handle()

    @keys.add("escape", "enter", filter=typing)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return keys
