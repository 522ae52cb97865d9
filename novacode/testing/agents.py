"""An agent in a workspace of its own: what runs, where, with which permissions, and what came of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import attrs
import trio

from novacode.app.choosing import Choice, choose, scripted
from novacode.app.settings import Places, load_settings
from novacode.app.setup import SessionWish, Setup
from novacode.app.wiring import App, open_app
from novacode.authority.approvals import Answer
from novacode.errors import ReplayMismatch
from novacode.testing.scripts import ScriptedModel
from novacode.testing.tapes import TestTape
from novacode.values.events import ApprovalAsked, CallSettled, Notice, RunEnded, Stamped
from novacode.values.history import History
from novacode.values.parts import JSON
from novacode.values.results import ToolResult

__all__ = ["NovaAgent", "Played", "Wish"]

E = TypeVar("E")

Answers = bool | Callable[[ApprovalAsked], bool | Answer]


@attrs.frozen
class Wish:
    """How a run is to be.

    `allow`, `ask` and `deny` are rules as in settings; `mode` is the permission mode. `answers` is what the person
    says to every question, or a function of the question; `None` is nobody to ask. `cancel_when` is told of every
    event, and stops the run when it returns true. `simulate` puts the world of the script in the place of the real
    one. `settings` are others, by their keys (`limits.max_turns`). `environ` is the environment in which keys of
    providers are looked for.
    """

    allow: Sequence[str] = ()
    ask: Sequence[str] = ()
    deny: Sequence[str] = ()
    mode: str = "default"
    answers: Answers | None = None
    cancel_when: Callable[[Stamped], bool] | None = None
    simulate: bool = False
    settings: Mapping[str, JSON] = attrs.field(factory=dict)
    environ: Mapping[str, str] = attrs.field(factory=dict)


@attrs.frozen
class Played:
    """What came of a run. `history` is that of the whole session, `events` those of the run, in order."""

    ended: RunEnded
    events: tuple[Stamped, ...]
    history: History
    notices: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """What the model said last."""
        return self.ended.text

    @property
    def status(self) -> str:
        """`completed`, `cancelled`, `failed`, `limit` or `refused`."""
        return self.ended.status.value

    @property
    def results(self) -> tuple[ToolResult, ...]:
        """The results of the run's calls, in the order in which they came."""
        return tuple(event.result for event in self.of(CallSettled))

    @property
    def outcomes(self) -> tuple[str, ...]:
        """Their outcomes, in the order of the calls."""
        calls = [result.call_id for exchange in self.history.exchanges for result in exchange.results]
        known = {result.call_id: result.outcome.value for result in self.results}
        return tuple(known[call_id] for call_id in calls if call_id in known)

    def of(self, kind: type[E]) -> tuple[E, ...]:
        """Return the events of one class, in order."""
        return tuple(stamped.event for stamped in self.events if isinstance(stamped.event, kind))


class NovaAgent:
    """An agent whose workspace, home and session are below one temporary folder.

    Runs follow each other on one session. Nothing of the person's own settings, keys or sessions is read or written.
    """

    def __init__(self, folder: Path, tape: TestTape | None = None) -> None:
        self.workspace = folder / "work"
        self.home = folder / "home"
        self.workspace.mkdir(parents=True, exist_ok=True)
        self._tape = tape
        self._runs = 0

    def write(self, name: str, text: str) -> Path:
        """Put a file into the workspace."""
        path = self.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def read(self, name: str) -> str:
        """Return what a file of the workspace holds."""
        return (self.workspace / name).read_text(encoding="utf-8")

    def run_sync(self, prompt: str, model: ScriptedModel | str = "", wish: Wish | None = None) -> Played:
        """Run `prompt` to its end, from a plain test. As `run`, in an event loop of its own."""
        played = self._tape is not None and self._tape.replaying
        clock = None
        if played or (wish is not None and wish.simulate):
            from trio.testing import MockClock  # nothing real is waited for, so no time need pass

            clock = MockClock(autojump_threshold=0)
        return trio.run(self.run, prompt, model, wish, clock=clock)

    async def run(self, prompt: str, model: ScriptedModel | str = "", wish: Wish | None = None) -> Played:
        """Run `prompt` to its end and return what came of it.

        `model` is a scripted one, or the name of a real one; with a tape that is replayed it is the one on the tape.
        Cancelled, it stops what it has started before `Cancelled` goes on. Raises what opening a session raises:
        `UsageError`, `SettingsError`, `CredentialsError`, and `ReplayMismatch` for what is not on the tape.
        """
        wish = wish or Wish()
        async with open_app(self._setup(model, wish)) as app:
            self._runs += 1
            return await _played(app, prompt, wish)

    def _setup(self, model: ScriptedModel | str, wish: Wish) -> Setup:
        flags = {
            "permissions.mode": wish.mode,
            "permissions.allow": list(wish.allow) or None,
            "permissions.ask": list(wish.ask) or None,
            "permissions.deny": list(wish.deny) or None,
            **wish.settings,
        }
        settings = load_settings(Places(self.home, self.workspace), wish.environ, flags)
        setup = Setup(
            settings,
            wish.environ,
            self.home,
            self.workspace,
            session=SessionWish(latest=self._runs > 0),
            somebody=wish.answers is not None,
            choice=None if self._tape is not None and self._tape.replaying else _choice(model, wish),
            simulate=wish.simulate,
        )
        return setup if self._tape is None else self._tape.into(setup)


def _choice(model: ScriptedModel | str, wish: Wish) -> Choice:
    if isinstance(model, ScriptedModel):
        return scripted("script:test", model.script)
    return choose(model or None, None, wish.environ)


async def _played(app: App, prompt: str, wish: Wish) -> Played:
    events: list[Stamped] = []
    send, receive = trio.open_memory_channel[Stamped](math.inf)

    def note(stamped: Stamped) -> None:
        events.append(stamped)
        if isinstance(stamped.event, ApprovalAsked):
            send.send_nowait(stamped)
        if wish.cancel_when is not None and wish.cancel_when(stamped):
            app.agent.cancel("the test")

    app.bus.subscribe(note)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_answer, app, receive, wish.answers)
        ended = await app.agent.run(prompt)
        nursery.cancel_scope.cancel()
    if ended.reason == "replay_mismatch":
        raise ReplayMismatch(next((e.event.text for e in reversed(events) if isinstance(e.event, Notice)), ""))
    return Played(ended, tuple(events), app.agent.talk.history, app.notices)


async def _answer(app: App, questions: trio.MemoryReceiveChannel[Stamped], answers: Answers | None) -> None:
    if answers is None:
        return
    async for stamped in questions:
        asked = stamped.event
        assert isinstance(asked, ApprovalAsked), "only questions are sent here"
        given = answers(asked) if callable(answers) else answers
        answer = given if isinstance(given, Answer) else Answer(given, by="the test")
        app.agent.answer(stamped.run_id, asked.approval_id, answer)
