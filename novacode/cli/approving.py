"""Questions of a run, asked one after another at the terminal."""

from __future__ import annotations

import trio

from novacode.authority.approvals import Answer, Scope
from novacode.authority.rules import Decision as RuleDecision
from novacode.authority.rules import parse_rule
from novacode.cli.ask import Decision, Pausable, TerminalAsker
from novacode.cli.outlet import Outlet
from novacode.engine.agent import Agent
from novacode.engine.bus import Bus
from novacode.errors import NovaError
from novacode.values.events import ApprovalAsked, ApprovalClosed, Stamped
from novacode.values.ids import ApprovalId, RunId

__all__ = ["Approver"]

_SCOPES = {"once": Scope.ONCE, "session": Scope.SESSION, "always": Scope.ALWAYS}


class Approver:
    """Takes the questions of an agent to a person. Subscribe it and run `run` in a task.

    A question that is closed meanwhile (its call was cancelled, somebody else answered) disappears from the queue,
    also while it is being asked. `kept_in` is the file for what is allowed for good. `said_next` is what the person
    said with the word that stopped the run: no answer, but what is to be done instead.
    """

    def __init__(self, agent: Agent, outlet: Outlet, face: Pausable, kept_in: str) -> None:
        self._agent = agent
        self._asker = TerminalAsker(0, outlet, face, _checked, kept_in)
        self._queue: list[tuple[RunId, ApprovalAsked]] = []
        self._asking: tuple[ApprovalId, trio.CancelScope] | None = None
        self._news = trio.Event()
        self.said_next = ""

    def subscribe(self, bus: Bus) -> None:
        """Receive the questions of `bus`."""
        bus.subscribe(self._take)

    def _take(self, stamped: Stamped) -> None:
        match stamped.event:
            case ApprovalAsked() as asked:
                self._queue.append((stamped.run_id, asked))
                self._news.set()
            case ApprovalClosed(approval_id=closed):
                self._queue = [item for item in self._queue if item[1].approval_id != closed]
                if self._asking is not None and self._asking[0] == closed:
                    self._asking[1].cancel()
            case _:
                pass

    async def run(self) -> None:
        """Ask and answer, until cancelled."""
        while True:
            while not self._queue:
                self._news = trio.Event()
                await self._news.wait()
            run_id, asked = self._queue.pop(0)
            with trio.CancelScope() as scope:
                self._asking = (asked.approval_id, scope)
                decision = await self._asker.ask(asked)
                self._asking = None
                self._answer(run_id, asked, decision)
            self._asking = None

    def _answer(self, run_id: RunId, asked: ApprovalAsked, decision: Decision) -> None:
        if decision.word == "stop":
            self.said_next = decision.words
            self._agent.cancel("stopped at a question")
            return
        allowed = decision.word in _SCOPES
        rules = tuple(line for line in decision.rule.splitlines() if line.strip()) if allowed else ()
        scope = _SCOPES.get(decision.word, Scope.ONCE)
        answer = Answer(allowed=allowed, by="you", words=decision.words, scope=scope, rules=rules)
        self._agent.answer(run_id, asked.approval_id, answer)


def _checked(rule: str) -> str:
    """Return what is wrong with a rule, empty where it can be kept."""
    try:
        for line in rule.splitlines():
            parse_rule(line, RuleDecision.ALLOW, "you")
    except NovaError as error:
        return str(error)
    return ""
