"""From the words of a syntax tree to what is known of them, and which commands run inside of them. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from novacode.authority.words import Word

__all__ = ["Node", "Words"]

Node = Mapping[str, Any]

_BRACES = re.compile(r"\{[^{}]*(?:,|\.\.)[^{}]*\}|\{.*[{,].*\}")
_SHELL_TILDE = re.compile(r"~[-+\d]")
_PLACE = frozenset({"Type", "Pos", "End", "Dollar", "Rbrace", "Short", "Param", "Left", "Right"})
_HARMLESS_EXPANSIONS = frozenset({"-", ":-", "+", ":+", "#", "##", "%", "%%", "?", ":?", "^", "^^", ",", ",,"})


class Words:
    """Reads words. What runs inside of them goes to `statements`, what cannot be judged to `doubt`."""

    def __init__(
        self, source: bytes, statements: Callable[[Sequence[Node]], None], doubt: Callable[[str], None]
    ) -> None:
        self._source = source
        self._statements = statements
        self._doubt = doubt

    def slice(self, node: Node) -> str:
        """Return how `node` is written."""
        return self._source[node["Pos"]["Offset"] : node["End"]["Offset"]].decode("utf-8", "replace")

    def word(self, node: Node | None) -> Word:
        """Return what is known of a word; its substitutions are walked."""
        if node is None:
            return Word("", "")
        parts = node.get("Parts", ())
        source = self.slice(node)
        values: list[str] = []
        single = True
        glob = False
        # `~+`, `~-` and `~2` are folders that only the running shell knows.
        known = _SHELL_TILDE.match(source) is None
        for part in parts:
            match part["Type"]:
                case "Lit":
                    value, live, braces = _literal(part["Value"])
                    values.append(value)
                    glob, known, single = glob or live, known and not braces, single and not braces
                case "SglQuoted":
                    if part.get("Dollar"):
                        self._doubt("$'…' is read differently by sh and bash")
                    values.append(part.get("Value", ""))  # left out where it is empty
                case "DblQuoted":
                    value, sure, one = self._double(part)
                    values.append(value)
                    known, single = known and sure, single and one
                case _:
                    known = False
                    single = self._expansion(part) and single
        value = "".join(values) if known else source
        return Word(value, source, known, glob, single and not glob, quoted=source[:1] in {"'", '"', "\\"})

    def walk(self, node: Node | None) -> None:
        """Walk the substitutions of a word or here-document whose value does not matter."""
        for part in (node or {}).get("Parts", ()):
            match part["Type"]:
                case "Lit" | "SglQuoted":
                    pass
                case "DblQuoted":
                    self.walk(part)
                case _:
                    self._expansion(part)

    def _double(self, node: Node) -> tuple[str, bool, bool]:
        if node.get("Dollar"):
            self._doubt('$"…" is read differently by sh and bash')
        values: list[str] = []
        known = single = True
        for part in node.get("Parts", ()):
            if part["Type"] == "Lit":
                values.append(re.sub(r'\\([$`"\\\n])', lambda found: found[1].strip("\n"), part["Value"]))
            else:
                known = False
                self._expansion(part)
                single = single and not _several(part)
        return "".join(values), known, single

    def _expansion(self, part: Node) -> bool:
        """Walk one expansion; return whether it is exactly one word also where it is not quoted."""
        match part["Type"]:
            case "CmdSubst":
                if part.get("TempFile") or part.get("ReplyVar"):
                    self._doubt("${ …; } runs in the shell itself")
                if part.get("Backquotes") and "\\" in self.slice(part):
                    self._doubt("a backslash inside backquotes")
                self._statements(part.get("Stmts", ()))
            case "ProcSubst":
                self._statements(part.get("Stmts", ()))
                return True
            case "ParamExp":
                self._parameter(part)
            case "ArithmExp":
                if part.get("Bracket") or not _constant(part.get("X")):
                    self._doubt("arithmetic with variables evaluates what they hold")
                return True
            case kind:
                self._doubt(f"{self.slice(part)} ({kind}) is not understood")
        return False

    def _parameter(self, part: Node) -> None:
        extra = set(part) - _PLACE - {"Length", "Exp", "Repl"}
        expression = part.get("Exp") or {}
        if extra or (expression and expression.get("Op") not in _HARMLESS_EXPANSIONS):
            self._doubt(f"{self.slice(part)} does more than give the value of a variable")
        if "Word" in expression:
            self.walk(expression["Word"])
        for name in ("Orig", "With"):
            self.walk((part.get("Repl") or {}).get(name))


def _several(part: Node) -> bool:
    return part["Type"] == "ParamExp" and (part["Param"]["Value"] == "@" or "Index" in part)


def _literal(raw: str) -> tuple[str, bool, bool]:
    """Return the value of bare text, whether it has a live pattern, and whether braces may make it several words."""
    value: list[str] = []
    live: list[str] = []
    signs = iter(raw)
    for sign in signs:
        if sign == "\\":
            escaped = next(signs, "")
            value.append("" if escaped == "\n" else escaped)
            live.append("_")
        else:
            value.append(sign)
            live.append(sign)
    bare = "".join(live)
    return (
        "".join(value),
        re.search(r"[*?]|\[.*\]", bare, re.DOTALL) is not None,
        bool("{" in bare and _BRACES.search(bare)),
    )


def _constant(node: Node | None) -> bool:
    """Whether an arithmetic expression is made of numbers only."""
    if node is None:
        return False
    match node["Type"]:
        case "Word":
            return len(node["Parts"]) == 1 and re.fullmatch(r"\d+", node["Parts"][0].get("Value", "")) is not None
        case "BinaryArithm":
            comparing = not node["Op"].endswith("=") or node["Op"] in {"==", "!=", "<=", ">="}
            return comparing and _constant(node["X"]) and _constant(node["Y"])
        case "UnaryArithm":
            return node["Op"] in {"-", "+", "!", "~"} and _constant(node["X"])
        case "ParenArithm":
            return _constant(node["X"])
        case _:
            return False
