"""Where a tape comes into a session: what recording and replaying have to offer, and neither of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import attrs
import trio

from novacode.app.clocks import ScriptClock
from novacode.authority.hooks import Hooks
from novacode.engine.agent import Agent
from novacode.engine.patience import Retry
from novacode.engine.reply import Model
from novacode.models.wire import Wire
from novacode.tools.toolset import Toolset

if TYPE_CHECKING:
    from novacode.app.choosing import Choice
    from novacode.models.tape_file import Tape

__all__ = ["NoTape", "Replay", "Surroundings", "Taping"]

Clock = Callable[[], float]


@attrs.frozen(eq=False, repr=False)
class Replay:
    """A tape to replay; `everything`, or the model alone, with real tools, hooks and questions."""

    tape: Tape
    everything: bool = True


@attrs.frozen(eq=False, repr=False)
class Surroundings:
    """What a tape has to know of its session. `hide` takes secrets out of a text, `clock` is the time now."""

    choice: Choice
    cwd: Path
    spill: Path
    clock: float
    seed: int
    somebody: bool
    hide: Callable[[str], str]


class Taping(Protocol):
    """What a session is built from goes through here once, and comes back recorded, replaced, or as it is."""

    @property
    def everything(self) -> bool:
        """Whether a tape takes the place of everything: nothing real is run, read or written."""
        ...

    @property
    def folder(self) -> Path | None:
        """Where the session is played; `None` for where it is."""
        ...

    @property
    def somebody(self) -> bool:
        """Whether a tape answers questions."""
        ...

    def clock(self, clock: Clock, script: ScriptClock) -> Clock:
        """Return the clock of the session; `script` is the one that is set by the model's wire."""
        ...

    def wire(self, make: Callable[[], Wire], on_time: Callable[[float], None]) -> Wire:
        """Return the wire to the model, made with `make` where one is needed."""
        ...

    def model(self, model: Model) -> Model:
        """Return who is asked."""
        ...

    def tools(self, tools: Toolset) -> Toolset:
        """Return what runs."""
        ...

    def hooks(self, hooks: Callable[[], Hooks]) -> Hooks:
        """Return who is asked before and after, made with `hooks` where real ones are needed."""
        ...

    def retry(self, retry: Retry) -> Retry:
        """Return how lost requests are tried again."""
        ...

    def attach(self, agent: Agent) -> None:
        """Listen to what happens, and answer."""
        ...

    async def background(self, agent: Agent) -> None:
        """Do what has to be done while the session is open; may return, or go on until cancelled."""
        ...

    def leftovers(self) -> tuple[str, ...]:
        """Return, for people, what is left on a tape that was played."""
        ...

    def close(self) -> None:
        """The session is over."""
        ...


class NoTape:
    """There is none: everything is as it is."""

    everything = False
    folder: Path | None = None
    somebody = False

    def clock(self, clock: Clock, script: ScriptClock) -> Clock:
        """Return `clock`."""
        return clock

    def wire(self, make: Callable[[], Wire], on_time: Callable[[float], None]) -> Wire:
        """Return the real wire."""
        return make()

    def model(self, model: Model) -> Model:
        """Return `model`."""
        return model

    def tools(self, tools: Toolset) -> Toolset:
        """Return `tools`."""
        return tools

    def hooks(self, hooks: Callable[[], Hooks]) -> Hooks:
        """Return the real hooks."""
        return hooks()

    def retry(self, retry: Retry) -> Retry:
        """Return `retry`."""
        return retry

    def attach(self, agent: Agent) -> None:
        """Do nothing."""

    async def background(self, agent: Agent) -> None:
        """Do nothing; a checkpoint."""
        await trio.lowlevel.checkpoint()

    def leftovers(self) -> tuple[str, ...]:
        """Return nothing."""
        return ()

    def close(self) -> None:
        """Do nothing."""
