"""A session on a tape: recording one, and replaying one. Imported where there is a tape."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import trio

from novacode.app.choosing import Choice, Spoken, scripted_label, without_key
from novacode.app.clocks import ScriptClock
from novacode.app.tape_seam import NoTape, Replay, Surroundings, Taping
from novacode.authority.approvals import Answer, Scope
from novacode.authority.hooks import Hooks, NoHooks
from novacode.authority.taped_hooks import RecordedHooks, TapedHooks
from novacode.engine.agent import Agent
from novacode.engine.limits import Ending
from novacode.engine.patience import Retry
from novacode.engine.reply import Model
from novacode.errors import SessionError, UsageError
from novacode.models.backoff import GiveUp, Stage, Wait
from novacode.models.client import ModelClient
from novacode.models.key_shapes import hide_keys
from novacode.models.tape import Recorder, RecordingWire, TapeWire
from novacode.models.tape_file import TapeHeader, TapeWriter
from novacode.models.tape_match import Names
from novacode.models.tape_moved import MovedModel
from novacode.models.tape_play import TapePlayer
from novacode.models.wire import Wire
from novacode.tools.taped import RecordedTool, TapedTool
from novacode.tools.toolset import Toolset
from novacode.values.events import ApprovalAsked, RunEnded, RunStatus, Stamped
from novacode.values.failure import Failure
from novacode.workspace.paths import SPILL as CALLED

__all__ = ["RecordedSession", "ReplayedSession", "choice_of", "taping_of"]

FOLDER, REPOSITORY, SPILL, PLATFORM = "⟦folder⟧", "⟦repository⟧", "⟦spill⟧", "⟦platform⟧"
"""What stands on a tape for what another machine calls otherwise. Nobody writes these brackets by accident."""

_SETTLED = 1e-3
"""Virtual seconds before a stop: time moves only once everybody waits, so all that was to happen before has."""


def taping_of(record: Path | None, replay: Replay | None, around: Surroundings) -> Taping:
    """Return what records or replays. Raises `InputError` where a tape cannot be written."""
    if replay is not None:
        return ReplayedSession(replay, around)
    assert record is not None, "without a tape there is nothing to do for this"
    return RecordedSession(record, around)


class RecordedSession(NoTape):
    """A session that goes onto the tape at `path`, which begins when the first request is made."""

    def __init__(self, path: Path, around: Surroundings) -> None:
        spoken = around.choice.spoken
        header = TapeHeader(
            around.choice.label,
            around.choice.name,
            spoken.protocol,
            spoken.quirks,
            spoken.issuer,
            around.choice.scripted,
            folder=str(around.cwd),
            repository=str(_repository(around.cwd)),
            platform=sys.platform,
            seed=around.seed,
            clock=around.clock,
            somebody=around.somebody,
        )
        self._writer = TapeWriter(path, header)
        self._recorder = Recorder(self._writer, _names(around, header))

    def wire(self, make: Callable[[], Wire], on_time: Callable[[float], None]) -> Wire:
        """Return the wire with a recorder around it."""
        return RecordingWire(make(), self._recorder)

    def tools(self, tools: Toolset) -> Toolset:
        """Return `tools`, recorded."""
        return tools.changed(lambda tool: RecordedTool(tool, self._recorder))

    def hooks(self, hooks: Callable[[], Hooks]) -> Hooks:
        """Return the real hooks, recorded; none stay none."""
        made = hooks()
        return made if isinstance(made, NoHooks) else RecordedHooks(made, self._recorder)

    def attach(self, agent: Agent) -> None:
        """Record what people answer and why runs are stopped; a tape that cannot be written ends the run."""
        agent.on_answer = self._answered
        agent.bus.subscribe(self._seen)
        self._writer.on_failure = lambda error: agent.bus.fail(
            SessionError(f"the tape {self._writer.path} cannot be written: {error.strerror or error}")
        )

    def close(self) -> None:
        """Close the file."""
        self._writer.close()

    def _answered(self, asked: ApprovalAsked, answer: Answer) -> None:
        told: dict[str, Any] = {"call": asked.call.id, "allowed": answer.allowed, "by": answer.by}
        if answer.words:
            told["words"] = answer.words
        if answer.scope is not Scope.ONCE:
            told |= {"scope": answer.scope.value, "rules": list(answer.rules)}
        self._recorder.note("answer", told)

    def _seen(self, stamped: Stamped) -> None:
        match stamped.event:
            case RunEnded(status=RunStatus.CANCELLED, reason=reason):
                self._recorder.note("stopped", {"reason": reason})
            case _:
                pass


class ReplayedSession(NoTape):
    """A session that is played from a tape.

    Where everything is, nothing real is run, read or written: the session is in the folder it was recorded in, whether
    or not that is there.
    """

    def __init__(self, replay: Replay, around: Surroundings) -> None:
        header, here = replay.tape.header, str(around.cwd)
        self.everything = replay.everything
        self.folder = Path(header.folder or here) if replay.everything else None
        self.somebody = replay.everything and header.somebody
        self._began = header.clock
        self._moved = {} if replay.everything or header.folder in ("", here) else {header.folder: here}
        meant = {FOLDER: str(self.folder), REPOSITORY: header.repository, SPILL: CALLED}
        places = meant if replay.everything else {}
        self._player = TapePlayer(replay.tape, _names(around, header), places, virtual=replay.everything)

    def clock(self, clock: Callable[[], float], script: ScriptClock) -> Callable[[], float]:
        """Return the time of the recording: what has gone by on the virtual clock, or what the model has taken."""
        if self.everything:
            return lambda: round(self._began + trio.current_time(), 6)
        script.set(self._began)
        return script

    def wire(self, make: Callable[[], Wire], on_time: Callable[[float], None]) -> Wire:
        """Return the tape as a wire; no other is made."""
        return TapeWire(self._player, None if self.everything else on_time)

    def model(self, model: Model) -> Model:
        """Return `model`; where it was recorded in another folder, one that means this one."""
        return MovedModel(model, self._moved) if self._moved and isinstance(model, ModelClient) else model

    def tools(self, tools: Toolset) -> Toolset:
        """Return tools that say what is on the tape, or `tools` as they are."""
        return tools.changed(lambda tool: TapedTool(tool, self._player)) if self.everything else tools

    def hooks(self, hooks: Callable[[], Hooks]) -> Hooks:
        """Return hooks that answer from the tape, or the real ones."""
        return TapedHooks(self._player) if self.everything else hooks()

    def retry(self, retry: Retry) -> Retry:
        """Return `retry`; where time is real, nothing is waited for."""

        def at_once(stage: Stage, times: int, failure: Failure) -> Wait | GiveUp:
            decided = retry(stage, times, failure)
            return Wait(0.0) if isinstance(decided, Wait) else decided

        return retry if self.everything else at_once

    def attach(self, agent: Agent) -> None:
        """Answer questions, and stop the run where something is not on the tape."""
        self._player.on_miss = lambda text: self._missed(agent, text)
        if self.everything:
            agent.bus.subscribe(lambda stamped: self._asked(agent, stamped))

    async def background(self, agent: Agent) -> None:
        """Stop the run where it was stopped, until cancelled."""
        while self.everything:
            await self._player.stop_due.wait()
            await trio.sleep(_SETTLED)
            if (reason := self._player.take_stop()) is not None:
                agent.cancel(reason)

    def leftovers(self) -> tuple[str, ...]:
        """Return, for people, what on the tape was not asked for."""
        return self._player.unused()

    def _missed(self, agent: Agent, text: str) -> None:
        if agent.active is not None:
            agent.active.fail(Ending(RunStatus.FAILED, "replay_mismatch", text))

    def _asked(self, agent: Agent, stamped: Stamped) -> None:
        """Answer a question at once, as it was answered; one that was open when the run was stopped stays open."""
        if not isinstance(stamped.event, ApprovalAsked):
            return
        asked = stamped.event
        line = self._player.take("answer", {"call": asked.call.id})
        if line is None:
            if not self._player.stops_later:
                what = f"the tape {self._player.tape.source} has no answer to the question about"
                self._missed(agent, f"{what} {asked.call.name} {asked.call.id} ({asked.reason})")
            return
        self._player.done(line.number)
        data = self._player.here(dict(line.data))
        # An "always" holds for the session only: a replay stores no rule on this machine.
        scope = Scope.ONCE if data.get("scope", "once") == "once" else Scope.SESSION
        rules = tuple(map(str, data.get("rules", ())))
        answer = Answer(data["allowed"], str(data["by"]), str(data.get("words", "")), scope, rules)
        agent.answer(stamped.run_id, asked.approval_id, answer)


def choice_of(header: TapeHeader, wanted: str | None) -> Choice:
    """Return the model that was recorded, which needs no key and no network.

    Where another provider's model is `wanted` its requests are made, to be compared with those on the tape. Raises
    `UsageError` for another script.
    """
    if not wanted or wanted == header.model:
        spoken = Spoken(header.protocol, header.quirks, header.issuer)
        return Choice(header.model, header.name, scripted=header.scripted, recorded=spoken)
    if wanted == "demo" or wanted.startswith("script:"):
        if scripted_label(wanted) == header.model:
            return choice_of(header, None)
        raise UsageError(f"the tape was recorded with {header.model}: leave --model {wanted} out, or record again")
    return without_key(wanted)


def _names(around: Surroundings, header: TapeHeader) -> Names:
    """Return what is written in other words on a tape: places of this machine, and those of the recording.

    What a model said of the folder it was recorded in is said again, wherever the tape is played.
    """
    cwd = around.cwd
    folders = [(str(around.spill), SPILL), (CALLED, SPILL)]
    folders += [(str(cwd), FOLDER), (str(cwd.resolve()), FOLDER), (header.folder, FOLDER)]
    repositories = [(str(_repository(cwd)), REPOSITORY), (header.repository, REPOSITORY)]
    known = {folder for folder, _ in folders}
    folders += [pair for pair in repositories if pair[0] not in known]
    others = [(f"\nPlatform: {name}", f"\nPlatform: {PLATFORM}") for name in {sys.platform, header.platform} if name]
    return Names.of(folders, sorted(others), lambda text: hide_keys(around.hide(text)))


def _repository(cwd: Path) -> Path:
    """Return the root of the repository of `cwd`; `cwd` where there is none."""
    return next((folder for folder in (cwd, *cwd.parents) if (folder / ".git").exists()), cwd)
