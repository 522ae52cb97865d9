"""Path patterns, as `glob` and `grep` take them. Pure."""

from __future__ import annotations

import re

__all__ = ["PathGlob"]


class PathGlob:
    """A pattern for paths relative to a folder, with `/` between names.

    `*` and `?` stay within one name, `**` spans folders, `[a-z]` is one character, `{a,b}` either. A pattern without
    a `/` fits a name at any depth, as in a .gitignore. A leading `!` turns it round. There is no wrong pattern: a
    bracket or brace that is not closed stands for itself.
    """

    def __init__(self, pattern: str) -> None:
        self._negated = pattern.startswith("!")
        pattern = pattern.removeprefix("!").removeprefix("./")
        if "/" not in pattern:
            pattern = f"**/{pattern}"
        self._regex = re.compile(_regex(pattern.lstrip("/")), re.DOTALL)

    def fits(self, path: str) -> bool:
        """Whether `path` is one of those that are meant."""
        return (self._regex.fullmatch(path) is not None) != self._negated


def _regex(pattern: str) -> str:
    made, at = "", 0
    while at < len(pattern):
        piece, at = _next_piece(pattern, at)
        made += piece
    return made


def _next_piece(pattern: str, at: int) -> tuple[str, int]:
    """Return the regular expression for what begins at `at`, and where the next begins."""
    char = pattern[at]
    if pattern.startswith("**/", at) and (at == 0 or pattern[at - 1] == "/"):
        return "(?:[^/]+/)*", at + 3
    if pattern.startswith("**", at):
        return ".*", at + 2
    if char == "*":
        return "[^/]*", at + 1
    if char == "?":
        return "[^/]", at + 1
    if char == "[" and (end := pattern.find("]", at + 2)) > 0:
        return _one_of(pattern[at + 1 : end]), end + 1
    if char == "{" and (end := _closing(pattern, at)) > 0:
        options = _split(pattern[at + 1 : end])
        return f"(?:{'|'.join(_regex(option) for option in options)})", end + 1
    if char == "\\" and at + 1 < len(pattern):
        return re.escape(pattern[at + 1]), at + 2
    return re.escape(char), at + 1


def _one_of(members: str) -> str:
    negated = members[0] in "!^" and len(members) > 1
    inside = re.sub(r"([\\\[\]&~|^])", r"\\\1", members[negated:])
    made = f"(?!/)[{'^' if negated else ''}{inside}]"
    try:
        re.compile(made)
    except re.error:  # a range that runs backwards
        return re.escape(f"[{members}]")
    return made


def _closing(pattern: str, at: int) -> int:
    depth = 0
    for end in range(at, len(pattern)):
        depth += {"{": 1, "}": -1}.get(pattern[end], 0)
        if depth == 0:
            return end
    return -1


def _split(inside: str) -> list[str]:
    options, depth = [""], 0
    for char in inside:
        depth += {"{": 1, "}": -1}.get(char, 0)
        if char == "," and depth == 0:
            options.append("")
        else:
            options[-1] += char
    return options
