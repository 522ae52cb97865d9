"""What a single call touches, which rules speak of it, and what it needs a grant for. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import attrs

from novacode.authority.analysis import HARMLESS_TARGETS, Analysis, SimpleCommand
from novacode.authority.modes import Mode
from novacode.authority.places import expand, sensitive
from novacode.authority.rules import Decision, Rule
from novacode.authority.searches import searched
from novacode.tools.base import Effects
from novacode.values.parts import ToolCall
from novacode.workspace.paths import Workspace

__all__ = ["Case", "Need"]


@attrs.frozen
class Need:
    """Something a call needs a grant for: where it comes from, or why it is missing; `rule` gives it or would."""

    grant: str = ""
    missing: str = ""
    rule: Rule | None = None


@attrs.frozen
class Case:
    """One call before the mode and rules of a policy. Answers the questions that `Policy.judge` asks, in its order."""

    mode: Mode
    rules: tuple[Rule, ...]
    changes: frozenset[str]
    call: ToolCall
    effects: Effects
    workspace: Workspace
    analysis: Analysis | None

    # --- rules that forbid or ask ---

    def matched(self, decision: Decision) -> Rule | None:
        """Return the first deny or ask rule that speaks of any part of the call."""
        return next((rule for rule in self._rules(decision) if self._touches(rule)), None)

    def hidden(self) -> str:
        """Say what a deny or ask rule with a pattern could be about and cannot be seen; empty where nothing is."""
        if self.analysis is None:
            return ""
        watched = self._watched()
        if not watched:
            return ""
        if self.analysis.unparsed:
            return f"{self.analysis.unparsed}, so the rule {watched[0].text} cannot be checked"
        for command in self.analysis.commands:
            rule = next((rule for rule in watched if rule.may_match_command(command)), None)
            if rule is not None:
                return f"`{command.text}` may turn out to be what the rule {rule.text} speaks of"
        return ""

    def opaque(self) -> list[Need]:
        """Return what has to be allowed by name: commands that a deny or ask rule cannot look into."""
        if self.analysis is None:
            return []
        found = [need for command in self.analysis.commands if (need := self._search_need(command))]
        watched = self._watched()
        if not watched:
            return found
        reason = f"may run what cannot be seen, so the rule {watched[0].text} cannot be checked"
        return found + [
            Need(missing=f"`{command.text}` {reason}", rule=None if command.dynamic else _exact("shell", command.text))
            for command in self.analysis.commands
            if command.opaque and not self._named(command)
        ]

    def _search_need(self, command: SimpleCommand) -> Need | None:
        """Return what a search needs where a deny or ask rule may speak of a file below the folder that it reads."""
        folders = [path for text in searched(command) for path in expand(text, self.workspace) or () if path.is_dir()]
        for rule in self.rules:
            if rule.decision is Decision.ALLOW or not rule.concerns("read") or self._named(command):
                continue
            if any(rule.may_match_below(folder, self.workspace) for folder in folders):
                missing = f"`{command.text}` may read what the rule {rule.text} speaks of"
                return Need(missing=missing, rule=None if command.dynamic else _exact("shell", command.text))
        return None

    def _watched(self) -> list[Rule]:
        rules = (rule for rule in self.rules if rule.decision is not Decision.ALLOW)
        return [rule for rule in rules if rule.concerns("shell")]

    def _named(self, command: SimpleCommand) -> bool:
        """Whether an allow rule speaks of this very command, and not of every one."""
        return self._allowed(lambda rule: not rule.everything and rule.matches_command(command)) is not None

    def _rules(self, decision: Decision) -> list[Rule]:
        return [rule for rule in self.rules if rule.decision is decision]

    def _touches(self, rule: Rule) -> bool:
        if self.analysis is not None and self._touches_line(rule, self.analysis):
            return True
        if not rule.concerns(self.call.name):
            return False
        if rule.everything:
            return True
        if self.effects.command is not None:
            return rule.matches_text(self.effects.command)
        if any(rule.matches_path(path, self.workspace) for path in (*self.effects.writes, *self.effects.reads)):
            return True
        if any(rule.matches_host(host) for host in self.effects.hosts):
            return True
        return bool(self.effects.subject) and rule.matches_text(self.effects.subject)

    def _touches_line(self, rule: Rule, analysis: Analysis) -> bool:
        if rule.concerns(self.call.name) and any(rule.matches_command(command) for command in analysis.commands):
            return True
        if rule.concerns("write") and self._any_path(rule, analysis.writes):
            return True
        return rule.concerns("read") and self._any_path(rule, analysis.reads)

    def _any_path(self, rule: Rule, paths: Iterable[str]) -> bool:
        if (
            rule.everything
        ):  # `edit` alone speaks of the tool; a shell line that writes is one it cannot have meant less
            return any(path not in HARMLESS_TARGETS for path in paths)
        resolved = (path for text in paths for path in expand(text, self.workspace) or ())
        return any(rule.matches_path(path, self.workspace) for path in resolved)

    # --- the mode `plan` ---

    def changing(self) -> str:
        """Say why the call may change something; empty where it certainly does not."""
        if self.analysis is not None:
            if self.analysis.unparsed:
                return self.analysis.unparsed
            if self.analysis.writes:
                return f"the line writes {self.analysis.writes[0]}"
            odd = next((command for command in self.analysis.commands if not command.read_only), None)
            return "" if odd is None else f"`{odd.text}` is not recognised as read-only: {odd.reason}"
        name = self.call.name
        if self.effects.writes or name in self.changes or name.startswith("mcp__") or name == "shell":
            return f"{name} may change something"
        return ""

    # --- what has to be granted ---

    def needs(self) -> list[Need]:
        """Return everything the call needs a grant for, at least one thing."""
        if self.analysis is not None:
            return self._line_needs(self.analysis)
        if granted := self._allowed(lambda rule: rule.everything):
            return [granted]
        writer = bool(self.changing())
        needs = [self._path_need(path, writes=True) for path in self.effects.writes]
        needs += [self._path_need(path, writes=writer) for path in self.effects.reads]
        needs += [self._host_need(host) for host in self.effects.hosts]
        if writer and not self.effects.writes:
            needs.append(self._subject_need())
        return needs or [Need("reading nothing but what the session holds")]

    def _allowed(self, covers: Callable[[Rule], bool], tool: str = "") -> Need | None:
        """Return the grant of the first allow rule for the tool that `covers` holds for, or `None`."""
        tool = tool or self.call.name
        for rule in self._rules(Decision.ALLOW):
            if rule.concerns(tool) and covers(rule):
                return Need(f"rule {rule.text}", rule=rule)
        return None

    def _line_needs(self, analysis: Analysis) -> list[Need]:
        if granted := self._allowed(lambda rule: rule.everything):
            return [granted, *self.opaque()]
        needs = [self._command_need(command) for command in analysis.commands]
        for text in analysis.redirect_writes:
            needs += self._target_needs(text, writes=True)
        for text in analysis.redirect_reads:
            needs += self._target_needs(text, writes=False)
        return needs or [Need("a line without commands")]

    def _command_need(self, command: SimpleCommand) -> Need:
        if granted := self._allowed(lambda rule: rule.matches_command(command)):
            return granted
        rule = None if command.dynamic else _exact("shell", command.text)
        if not command.read_only:
            return Need(missing=f"`{command.text}` is not recognised as read-only: {command.reason}", rule=rule)
        if need := self._search_need(command):
            return need
        needs = [need for text in command.reads for need in self._target_needs(text, writes=False)]
        needs += [need for text in command.writes for need in self._target_needs(text, writes=True)]
        missing = next((need for need in needs if need.missing), None)
        return Need("read-only command") if missing is None else attrs.evolve(missing, rule=rule)

    def _target_needs(self, text: str, *, writes: bool) -> list[Need]:
        """Return what a path in a shell line needs; a pattern needs it for everything it matches."""
        if text in HARMLESS_TARGETS:
            return [Need("harmless device")]
        paths = expand(text, self.workspace)
        if paths is None:
            return [Need(missing=f"`{text}` may match too much, or anything")]
        return [self._path_need(path, writes=writes, tool="write" if writes else "read") for path in paths]

    def _path_need(self, path: Path, *, writes: bool, tool: str = "") -> Need:
        if granted := self._allowed(lambda rule: rule.matches_path(path, self.workspace), tool):
            return granted
        shown = self.workspace.display(path)
        rule = _exact_path("edit" if writes else "read", path, self.workspace)
        if not self.workspace.contains(path):
            return Need(missing=f"{shown} is outside the workspace", rule=rule)
        if not writes:
            return Need("reading in the workspace")
        if kind := sensitive(path, self.workspace):
            return Need(missing=f"{shown} is {kind}", rule=rule)
        if self.mode is Mode.ACCEPT_EDITS:
            return Need("mode accept-edits")
        return Need(missing=f"it writes {shown}", rule=rule)

    def _host_need(self, host: str) -> Need:
        if granted := self._allowed(lambda rule: rule.matches_host(host)):
            return granted
        return Need(
            missing=f"it talks to {host}", rule=Rule(Decision.ALLOW, self.call.name, f"domain:{host}", "always")
        )

    def _subject_need(self) -> Need:
        subject = self.effects.subject
        if subject and (granted := self._allowed(lambda rule: rule.matches_text(subject))):
            return granted
        missing = f"{self.call.name} may change something"
        if not subject and self.call.name in {"edit", "shell", "write"}:
            return Need(missing=missing)  # arguments that name nothing: no rule is narrow enough to offer
        pattern = f"={subject}" if subject else None
        return Need(missing=missing, rule=Rule(Decision.ALLOW, self.call.name, pattern, "always"))


def _exact(tool: str, text: str) -> Rule:
    """Return the rule for exactly this text: `=` where the text would be read as a pattern."""
    plain = "*" not in text and not text.startswith("=") and text == " ".join(text.split())
    return Rule(Decision.ALLOW, tool, text if plain else f"={text}", "always")


def _exact_path(tool: str, path: Path, workspace: Workspace) -> Rule:
    text = workspace.display(path)
    if any(sign in text for sign in "*?~") or text.startswith("=") or text != text.strip():
        return Rule(Decision.ALLOW, tool, f"={path}", "always")
    return Rule(Decision.ALLOW, tool, text if "/" in text else f"./{text}", "always")
