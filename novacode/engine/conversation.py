"""The holder of the current history. It changes in few places, each one step without a checkpoint."""

from __future__ import annotations

from typing import assert_never

from novacode.engine.reply import Reply
from novacode.values.compaction import compacted
from novacode.values.events import Compacted, Emit, RunBegan, TurnCommitted, UserAdded
from novacode.values.history import Exchange, History
from novacode.values.parts import User
from novacode.values.results import ToolResult

__all__ = ["Conversation"]


class Conversation:
    """One session's history, shared by its runs one after the other."""

    def __init__(self, history: History | None = None) -> None:
        self.history = history or History()

    def begin(self, prompt: User, model: str, emit: Emit) -> None:
        """Add what the person said, and begin a run with it."""
        self.history = self.history.with_user(prompt)
        emit(RunBegan(prompt, model))

    def nudge(self, text: str, emit: Emit, origin: str = "runtime") -> None:
        """Say something in the user's role for the runtime, or for a hook."""
        user = User.said(text, origin=origin)
        self.history = self.history.with_user(user)
        emit(UserAdded(user))

    def commit(self, reply: Reply, results: tuple[ToolResult, ...], emit: Emit) -> Exchange | None:
        """Make what was said and done history, and return it; `None` where nothing was said. No checkpoint."""
        message = reply.message()
        if message is None:
            return None
        exchange = Exchange(message, results)
        self.history = self.history.with_exchange(exchange)
        finish = reply.finish
        emit(
            TurnCommitted(
                exchange,
                reply.usage,
                finish.stop if finish else None,
                finish.raw if finish else None,
            )
        )
        return exchange

    def compact(self, event: Compacted, emit: Emit) -> None:
        """Make the history what `event` leaves of it. No checkpoint."""
        self.history = compacted(self.history, event)
        emit(event)

    def last_text(self) -> str:
        """What the model said last in this run; an answer that was cut and continued counts as one."""
        pieces: list[str] = []
        joined = True
        for item in reversed(self.history.items):
            match item:
                case User(origin="person"):
                    break
                case User(origin="hook"):  # what stands before it was whole, until the hook wanted more
                    pass
                case User():  # a nudge: what stands before it is the first half of what stands after it
                    joined = True
                case Exchange(message, results):
                    if pieces and (results or not joined):
                        break
                    pieces.append(message.text)
                    joined = False
                case _:
                    assert_never(item)
        return "".join(reversed(pieces))
