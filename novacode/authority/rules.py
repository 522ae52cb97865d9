"""Permission rules: their syntax and what they match. Pure.

A rule is `Tool` or `Tool(pattern)`. One matcher for each kind of pattern; all of them take the decision into account:
an allow rule matches strictly, only what it certainly covers, and deny and ask rules match leniently, whatever they
might be meant for. A doubt so always ends in the safer decision.
"""

from __future__ import annotations

import enum
import fnmatch
import functools
import re
from pathlib import Path

import attrs

from novacode.authority.analysis import SimpleCommand
from novacode.authority.words import plain_words
from novacode.errors import SettingsError
from novacode.workspace.paths import Workspace

__all__ = ["Decision", "Rule", "parse_rule"]

ALIASES = {
    "bash": "shell",
    "read": "read",
    "edit": "edit",
    "multiedit": "edit",
    "notebookedit": "edit",
    "write": "write",
    "glob": "glob",
    "grep": "grep",
    "webfetch": "fetch",
    "shell": "shell",
    "fetch": "fetch",
}
"""Names of tools in any case, other agents' included, to ours."""

COVERS = {"edit": frozenset({"edit", "write"}), "read": frozenset({"read", "glob", "grep"})}
"""A rule for `edit` speaks of every tool that changes files, one for `read` of every tool that reads them."""

_FORM = re.compile(r"(?P<tool>\*|[A-Za-z_][\w.*-]*)(?:\((?P<pattern>.*)\))?", re.DOTALL)


class Decision(enum.StrEnum):
    """What a rule decides. Deny beats ask beats allow, whatever the source."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


@attrs.frozen
class Rule:
    """One rule. `tool` is a name or a pattern of names; `pattern` is `None` where the rule speaks of every call.

    `source` is where it was written, for people: `--allow`, or a file and line.
    """

    decision: Decision
    tool: str
    pattern: str | None = None
    source: str = ""

    @property
    def text(self) -> str:
        """The rule as it is written; `parse_rule` takes it back."""
        return self.tool if self.pattern is None else f"{self.tool}({self.pattern})"

    @property
    def everything(self) -> bool:
        """Whether it covers every call of its tools."""
        return self.pattern is None or self.pattern == "*"

    def concerns(self, tool: str) -> bool:
        """Whether it speaks of `tool` at all. `mcp__server` speaks of all tools of that server."""
        if tool in COVERS.get(self.tool, ()) or self.tool == tool:
            return True
        if self.tool.startswith("mcp__") and tool.startswith(f"{self.tool}__"):
            return True
        return "*" in self.tool and fnmatch.fnmatchcase(tool, self.tool)

    def matches_command(self, command: SimpleCommand) -> bool:
        """Whether it covers one simple command of a shell line."""
        if self.pattern is None or self.everything:
            return True
        shape = _Shape.of(self.pattern)
        if self.decision is Decision.ALLOW:
            return shape.certainly(command)
        return any(shape.match(form) for form in (command.text, *command.forms))

    def may_match_command(self, command: SimpleCommand) -> bool:
        """Whether the words of `command` that are not known yet could turn out such that the rule covers it."""
        if self.pattern is None or self.everything:
            return False
        return _Shape.of(self.pattern).perhaps(command)

    def matches_text(self, text: str) -> bool:
        """Whether its pattern matches `text` as a whole, as it is."""
        return self.pattern is None or self.everything or _Shape.of(self.pattern).match(text)

    def matches_path(self, path: Path, workspace: Workspace) -> bool:
        """Whether it covers `path`, which is absolute and resolved."""
        if self.pattern is None or self.everything:
            return True
        if self.pattern.startswith("="):
            return path == workspace.resolve(self.pattern[1:])
        strict = self.decision is Decision.ALLOW
        compiled = _path_regex(self.pattern, str(workspace.root), strict)
        text = str(path) if strict else str(path).casefold()
        return compiled.fullmatch(text) is not None

    def may_match_below(self, folder: Path, workspace: Workspace) -> bool:
        """Whether it could cover something below `folder`, which is absolute and resolved."""
        if self.pattern is None or self.everything:
            return True
        if self.pattern.startswith("="):
            return folder in workspace.resolve(self.pattern[1:]).parents
        parts = _absolute(self.pattern, str(workspace.root)).split("/")
        wild = next((index for index, part in enumerate(parts) if "*" in part or "?" in part), len(parts))
        start = Path("/".join(parts[:wild]) or "/")
        return folder == start or folder in start.parents or start in folder.parents

    def matches_host(self, host: str) -> bool:
        """Whether it covers talking to `host`: `domain:` patterns only. Deny and ask cover subdomains as well."""
        if self.pattern is None or self.everything:
            return True
        domain = self.pattern.removeprefix("domain:").casefold().rstrip(".")
        if domain == self.pattern:
            return False
        host = host.casefold().rstrip(".")
        below = self.decision is not Decision.ALLOW and host.endswith(f".{domain}")
        return host == domain or below or ("*" in domain and fnmatch.fnmatchcase(host, domain))


def parse_rule(text: str, decision: Decision | str, source: str) -> Rule:
    """Return the rule written as `text`. Raises `SettingsError` with the value, its source and what is expected."""
    text = text.strip()
    found = _FORM.fullmatch(text)
    if found is None:
        raise SettingsError(
            f"{source}: {text!r} is not a permission rule; "
            "write `tool` or `tool(pattern)`, for example `shell(git log:*)` or `edit(src/**)`"
        )
    pattern = found["pattern"]
    if pattern is not None and not pattern.strip().removeprefix("="):
        raise SettingsError(
            f"{source}: the pattern of {text!r} is empty; leave the parentheses away to speak of every call"
        )
    tool = found["tool"]
    tool = ALIASES.get(tool.casefold(), tool)
    if tool == "fetch" and pattern is not None and pattern != "*" and not pattern.removeprefix("domain:").strip():
        raise SettingsError(f"{source}: {text!r} names no domain; write for example `fetch(domain:example.org)`")
    try:
        decided = Decision(decision)
    except ValueError:
        raise SettingsError(f"{source}: {decision!r} is not a decision; use allow, ask or deny") from None
    return Rule(decided, tool, pattern, source)


@attrs.frozen(eq=False, repr=False)
class _Shape:
    """A pattern for commands: `pieces` of literal text with anything between them, one piece where it is exact.

    `tail` tells that the last thing is a wildcard behind a whole word (`git log:*`, `git log *`): it covers the
    command without arguments as well, but not `git logs`.
    """

    pieces: tuple[str, ...]
    tail: bool = False

    @staticmethod
    @functools.lru_cache(maxsize=1024)
    def of(pattern: str) -> _Shape:
        """Return the shape of the text between a rule's parentheses."""
        if pattern.startswith("="):
            return _Shape((pattern[1:],))
        pattern = pattern.strip()
        for end in (":*", " *"):
            if pattern.endswith(end):
                return _Shape(tuple(_spaced(pattern[: -len(end)]).split("*")), tail=True)
        words = plain_words(pattern)
        return _Shape(tuple(_spaced(pattern).split("*")) if words is None else (" ".join(word.text for word in words),))

    def match(self, text: str) -> bool:
        """Whether `text` as a whole has this shape."""
        body = ".*".join(re.escape(piece) for piece in self.pieces)
        return re.fullmatch(body + (r"(?:\s.*)?" if self.tail else ""), text, re.DOTALL) is not None

    def certainly(self, command: SimpleCommand) -> bool:
        """Whether the command has this shape however its unknown words turn out."""
        if not command.dynamic:
            return self.match(command.text)
        if not self.tail or len(self.pieces) != 1:
            return False
        return len(self.pieces[0].split(" ")) <= command.known and self.match(command.text)

    def perhaps(self, command: SimpleCommand) -> bool:
        """Whether the unknown words could turn out such that the command has this shape."""
        if command.start is None:
            return False
        first = self.pieces[0]
        return first.startswith(command.start) or command.start.startswith(first)


def _spaced(text: str) -> str:
    return " ".join(text.split())


def _path_regex(pattern: str, root: str, strict: bool) -> re.Pattern[str]:
    """Compile a path pattern. Strict: only what is written; lenient: what lies below a match too, in any case.

    As in gitignore, a pattern without a slash matches at any depth, `*` and `?` stay within a name and `**` does not.
    """
    return _compiled(_absolute(pattern, root), pattern.endswith("/") or not strict, strict)


def _absolute(pattern: str, root: str) -> str:
    pattern = pattern.rstrip("/")
    if pattern.startswith("~"):
        pattern = str(Path(pattern).expanduser())
    if not pattern.startswith("/"):
        anchored = "/" in pattern
        pattern = pattern.removeprefix("./")
        pattern = f"{root}/{pattern}" if anchored else f"{root}/**/{pattern}"
    return _resolved_start(pattern)


@functools.lru_cache(maxsize=1024)
def _compiled(pattern: str, below: bool, strict: bool) -> re.Pattern[str]:
    parts = pattern.strip("/").split("/")
    body = "".join(_part_regex(part, last=index == len(parts) - 1) for index, part in enumerate(parts))
    body += "(?:/.*)?" if below else ""
    return re.compile(body if strict else body.casefold(), re.DOTALL)


def _part_regex(part: str, *, last: bool) -> str:
    if part == "**":
        return "(?:/.+)?" if last else "(?:/[^/]+)*"
    escaped = re.escape(part).replace(r"\*\*", "[^/]*").replace(r"\*", "[^/]*").replace(r"\?", "[^/]")
    return f"/{escaped}"


def _resolved_start(pattern: str) -> str:
    """Resolve links in the folders in front of the first wildcard: paths are judged resolved, patterns are not."""
    parts = pattern.split("/")
    wild = next((index for index, part in enumerate(parts) if "*" in part or "?" in part), len(parts))
    start = "/".join(parts[:wild]) or "/"
    try:
        resolved = str(Path(start).resolve())
    except (OSError, RuntimeError, ValueError):
        resolved = start
    return "/".join([resolved.rstrip("/"), *parts[wild:]])
