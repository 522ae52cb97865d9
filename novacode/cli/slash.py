"""What a line that begins with a slash does in a chat. Nothing here waits; what has to is done by whoever reads."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping

import attrs

from novacode.app.choosing import choose
from novacode.app.wiring import App
from novacode.authority.approvals import Scope
from novacode.authority.modes import Mode, parse_mode
from novacode.authority.rules import Rule
from novacode.cli.escape import visible
from novacode.errors import NovaError
from novacode.values.events import RunEnded, Stamped
from novacode.values.request import Usage

__all__ = ["Commands", "Compact", "Outcome", "Quit", "Reopen"]

_COMMAND = re.compile(r"/([A-Za-z][A-Za-z-]*|\?)(?:\s+(.*))?", re.DOTALL)
"""A path (`/usr/bin is full`) is no command: its first word has a second slash."""


@attrs.frozen
class Quit:
    """End the chat."""


@attrs.frozen
class Reopen:
    """Go on with another session, or with this one and another model. What stays is said by the fields.

    `session` is the id to go on with, empty for a new one; `mode` is the mode in force, which outlives both. `rules`
    are those in force, or `None` where those of this session end with it.
    """

    mode: Mode
    rules: tuple[Rule, ...] | None = None
    session: str = ""
    model: str | None = None


@attrs.frozen
class Compact:
    """Shorten the conversation; `wanted` is what the summary has to hold besides."""

    wanted: str = ""


Outcome = str | Quit | Reopen | Compact
"""A text to show, or what to do instead."""


@attrs.define
class _Spent:
    """What the runs of this chat have used."""

    runs: int = 0
    read: int = 0
    written: int = 0
    cost: float = 0.0
    unknown: bool = False

    def __call__(self, stamped: Stamped) -> None:
        """Take an event; the sink to subscribe."""
        if isinstance(stamped.event, RunEnded):
            ended = stamped.event
            self.runs += 1
            self.read += ended.usage.prompt
            self.written += ended.usage.completion
            self.cost += ended.cost_usd or 0.0
            self.unknown = self.unknown or (ended.cost_usd is None and ended.usage != Usage())


class Commands:
    """The commands of a chat over one session."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._spent = _Spent()
        app.bus.subscribe(self._spent)
        self._table: Mapping[str, tuple[str, Callable[[str], Outcome]]] = {
            "help": ("what can be typed here", self._help),
            "mode": (f"[MODE] show or set how much happens without a question: {', '.join(Mode)}", self._mode),
            "model": ("[NAME] show the model, or go on with another one", self._model),
            "allow": ("RULE allow something for this session: /allow shell(pytest:*)", self._allow),
            "permissions": ("the mode and the rules in force, each with where it comes from", self._permissions),
            "session": ("which session this is, and how to come back to it", self._session),
            "cost": ("what was used so far", self._cost),
            "compact": ("[WHAT] shorten the conversation to a summary; WHAT it must not leave out", Compact),
            "clear": ("begin a new session; this one is kept", self._clear),
            "quit": ("end the chat; so do Ctrl-D, and Ctrl-C twice", lambda _: Quit()),
        }

    def take(self, text: str) -> Outcome | None:
        """Do what `text` says where it is a command; `None` where it is none and so is for the model."""
        found = _COMMAND.fullmatch(text)
        if found is None:
            return None
        name, argument = found[1].lower(), (found[2] or "").strip()
        name = {"?": "help", "exit": "quit", "new": "clear"}.get(name, name)
        if name not in self._table:
            close = difflib.get_close_matches(name, self._table, n=1)
            guess = f"did you mean /{close[0]}? " if close else ""
            return f"There is no command /{visible(found[1])}; {guess}/help lists them. Nothing was sent."
        try:
            return self._table[name][1](argument)
        except NovaError as error:
            return visible(str(error))

    def _help(self, _: str) -> str:
        lines = [f"  /{name:<12} {words}" for name, (words, _) in self._table.items()]
        return "\n".join(
            (
                "What you type is said to the model. A backslash at the end of a line goes on with the next one, and",
                "a paste of several lines is one prompt. A line that begins with a slash is a command; with a space",
                "before the slash it is for the model.",
                *lines,
                "While something is under way: Ctrl-C stops it, and again skips the wait. What is typed meanwhile is",
                "read at the next prompt, but thrown away by a question: a key typed before it must not answer it.",
                "At a question: q stops the run, and words after it are your next prompt.",
            )
        )

    def _mode(self, wanted: str) -> str:
        permissions = self._app.agent.services.permissions
        if wanted:
            permissions.set_mode(parse_mode(wanted))
        return f"The mode is {permissions.policy.mode}{' now' if wanted else ''}."

    def _model(self, wanted: str) -> Outcome:
        if not wanted:
            return f"The model is {self._app.choice.label}."
        session = self._app.session
        if session.path is None:
            return "This session is kept nowhere, so it cannot be gone on with; start the chat with --model instead."
        settings = self._app.setup.settings
        choose(wanted, settings.base_url, self._app.setup.environ)  # wrong names and missing keys are told here
        policy = self._app.agent.services.permissions.policy
        return Reopen(policy.mode, policy.rules, session.id, wanted)

    def _allow(self, rule: str) -> str:
        if not rule:
            return "Which rule? For example: /allow shell(pytest:*)"
        self._app.agent.services.permissions.remember((rule,), Scope.SESSION)
        return f"Allowed until the end of this session: {visible(rule)}"

    def _permissions(self, _: str) -> str:
        policy = self._app.agent.services.permissions.policy
        rules = [f"  {rule.decision:<6} {visible(rule.text)}  ({visible(rule.source)})" for rule in policy.rules]
        return "\n".join((f"Mode: {policy.mode}", *(rules or ["There are no rules."])))

    def _session(self, _: str) -> str:
        session = self._app.session
        exchanges = sum(1 for _ in self._app.agent.talk.history.exchanges)
        place = visible(str(self._app.setup.cwd))
        lines = [f"Session {session.id}, {exchanges} exchange{'s' * (exchanges != 1)}, in {place}"]
        if session.path is None:
            lines.append("It is kept nowhere and ends with this chat.")
        else:
            lines += [f"Kept in {visible(str(session.path))}", f"Go on with it: novacode chat -r {session.id}"]
        return "\n".join(lines)

    def _cost(self, _: str) -> str:
        spent, before = self._spent, self._app.session.loaded.cost_usd
        lines = [f"{spent.runs} run{'s' * (spent.runs != 1)}, {spent.read} tokens read, {spent.written} written"]
        if spent.unknown:
            lines.append(f"What {visible(self._app.choice.label)} costs is not known for all of them.")
        lines.append(
            f"Cost of this chat: ${spent.cost:.4f}" + (f"; the session before it: ${before:.4f}" * bool(before))
        )
        return "\n".join(lines)

    def _clear(self, _: str) -> Reopen:
        return Reopen(self._app.agent.services.permissions.policy.mode)
