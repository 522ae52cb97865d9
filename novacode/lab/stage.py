"""What the lab needs of an agent on a stage: to run it, to stop it, and to see afterwards what happened."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from novacode.engine.agent import Agent
from novacode.engine.limits import Limits
from novacode.values.events import Stamped
from novacode.values.ids import CallId
from novacode.values.parts import ToolCall
from novacode.values.request import ModelRequest

__all__ = ["Stage"]


class Stage(Protocol):
    """A fresh agent with everything around it, and the record of what really happened.

    `log` is one list that everybody on the stage writes to, in order. Its entries are `model` (a request is made),
    `sweep begins`, `sweep ends`, `run ended`, and about one call `pre ID` (a hook is asked), `refuse ID` (it says
    no), `take ID` (a snapshot), `begin ID` (the tool's own code is entered), `done ID` (it came to its own end),
    `end ID` (it is left, clean-up done), `record ID` and `post ID`. The lab adds `strike`. What the log says is what
    was done; what `events` say is what was told. An invariant compares the two.
    """

    @property
    def agent(self) -> Agent:
        """The agent, with a bus that `events` and `log` are fed from."""
        ...

    @property
    def prompt(self) -> str:
        """What the run is asked to do."""
        ...

    @property
    def log(self) -> list[str]:
        """What happened, in order."""
        ...

    @property
    def noted(self) -> Sequence[str]:
        """Which of the steps around a call the log has: of `pre`, `take`, `record` and `post`."""
        ...

    @property
    def limits(self) -> Limits:
        """The limits that the first run has to keep."""
        ...

    @property
    def events(self) -> list[Stamped]:
        """What was said about it, in order."""
        ...

    @property
    def requests(self) -> list[ModelRequest]:
        """What the model was asked."""
        ...

    @property
    def ran(self) -> Mapping[CallId, ToolCall]:
        """The calls as their tools were given them."""
        ...

    @property
    def written(self) -> Collection[CallId]:
        """The calls that had an effect, once for each effect, in order."""
        ...

    @property
    def alive(self) -> Collection[str]:
        """What was started and is not over yet, in words: tools."""
        ...

    @property
    def cleaning(self) -> Collection[str]:
        """What is cleaning up now."""
        ...

    @property
    def streams(self) -> int:
        """How many responses of the model are open."""
        ...

    async def person(self) -> None:
        """Answer questions, until cancelled; what the person does who watches the run."""
        ...

    def next_act(self, *, asking: bool) -> str:
        """Put the next run on the stage, without limits, and return its prompt; the person answers nothing any more.

        Where `asking`, the model makes one call, for which permission is asked; it is denied by the lab. Then, and
        else at once, it says something and ends.
        """
        ...
