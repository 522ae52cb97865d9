"""From a syntax tree to simple commands and redirections. Pure.

Node types and fields that are not known are doubts, never skipped: a newer parser may know more grammar than this
module does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from novacode.authority.expansion import Node, Words
from novacode.authority.words import Assign, Word, names

__all__ = ["Sink", "walk"]

_STATEMENT = names("Type Pos End Position Semicolon Cmd Redirs Background Coprocess Negated Comments")
_WRITES = frozenset({">", ">>", ">|", "<>", "&>", "&>>"})
_DUPLICATE = re.compile(r"\d+-?|-")
_TEST_OPERATORS = names("&& || ! -z -n == = != -a -e -f -d -s -r -w -x -L -h")


class Sink(Protocol):
    """What takes the findings."""

    def command(self, assigns: Sequence[Assign], words: Sequence[Word]) -> None:
        """Take a simple command; `words` is empty for assignments alone."""
        ...

    def other(self, text: str, reason: str, *, shapes_names: bool = False) -> None:
        """Take a command that is grammar, not read-only for `reason`; it may change what names mean."""
        ...

    def harmless(self, text: str) -> None:
        """Take a command that is grammar and changes nothing."""
        ...

    def redirect(self, path: str, *, writes: bool) -> None:
        """Take the target of a redirection."""
        ...

    def doubt(self, reason: str) -> None:
        """Take a reason why the line cannot be judged."""
        ...


def walk(tree: Node, source: bytes, sink: Sink) -> None:
    """Give everything in `tree` to `sink`."""
    walker = _Walker(source, sink)
    walker.statements(tree.get("Stmts", ()))
    if walker.calls != _count_calls(tree):
        sink.doubt("the line has commands in places that are not understood")


def _count_calls(node: Any) -> int:
    if isinstance(node, list):
        return sum(_count_calls(item) for item in node)
    if not isinstance(node, Mapping):
        return 0
    own = 1 if node.get("Type") == "CallExpr" else 0
    return own + sum(_count_calls(value) for value in node.values())


class _Walker:
    def __init__(self, source: bytes, sink: Sink) -> None:
        self.sink = sink
        self.words = Words(source, self.statements, sink.doubt)
        self.calls = 0
        self.kinds: Mapping[str, Callable[[Node], None]] = {
            "CallExpr": self.call,
            "BinaryCmd": self.binary,
            "Block": lambda node: self.statements(node.get("Stmts", ())),
            "Subshell": lambda node: self.statements(node.get("Stmts", ())),
            "IfClause": self.conditional,
            "WhileClause": self.loop,
            "ForClause": self.each,
            "CaseClause": self.case,
            "TimeClause": self.timed,
            "FuncDecl": self.function,
            "DeclClause": self.declaration,
            "LetClause": self.arithmetic,
            "ArithmCmd": self.arithmetic,
            "TestClause": self.test,
            "CoprocClause": self.coprocess,
        }

    def statements(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            self.statement(node)

    def statement(self, node: Node) -> None:
        unknown = set(node) - _STATEMENT
        if unknown:
            self.sink.doubt(f"{min(unknown)} in a statement is not understood")
        command = node.get("Cmd")
        if command is not None:
            kind = self.kinds.get(command["Type"])
            if kind is None:
                self.sink.doubt(f"{command['Type']} is not understood")
            else:
                kind(command)
        for redirection in node.get("Redirs", ()):
            self.redirection(redirection)

    def redirection(self, node: Node) -> None:
        operator = node["Op"]
        target = self.words.word(node["Word"])
        if operator in {"<<", "<<-"}:
            self.document(node, quoted=target.source != target.value)
            return
        if operator == "<<<" or (operator in {">&", "<&"} and target.sure and _DUPLICATE.fullmatch(target.value)):
            return
        if operator not in _WRITES and operator not in {">&", "<"}:
            self.sink.doubt(f"the redirection {operator} is not understood")
        elif not target.sure:
            self.sink.doubt(f"the line redirects to {target.source}, which is not literal")
        else:
            self.sink.redirect(target.path, writes=operator != "<")

    def document(self, node: Node, *, quoted: bool) -> None:
        body = node.get("Hdoc")
        if body is not None and not quoted and "\\\n" in self.words.slice(body):
            # The shell joins lines before it looks for the end of the text, the parser does not.
            self.sink.doubt("a backslash at the end of a line in a here-document may end it early; quote its end word")
        self.words.walk(body)

    def call(self, node: Node) -> None:
        self.calls += 1
        assigns = [self.assign(item) for item in node.get("Assigns", ())]
        words = [self.words.word(item) for item in node.get("Args", ())]
        self.sink.command(assigns, words)

    def assign(self, node: Node) -> Assign:
        plain = not set(node) - {"Type", "Pos", "End", "Name", "Value"}
        for element in (node.get("Array") or {}).get("Elems", ()):
            self.words.walk(element.get("Value"))
        return Assign(node["Name"]["Value"], self.words.word(node.get("Value")), plain)

    def binary(self, node: Node) -> None:
        if node["Op"] not in {"&&", "||", "|", "|&"}:
            self.sink.doubt(f"the operator {node['Op']} is not understood")
        self.statement(node["X"])
        self.statement(node["Y"])

    def conditional(self, node: Node) -> None:
        self.statements(node.get("Cond", ()))
        self.statements(node.get("Then", ()))
        if "Else" in node:
            self.conditional(node["Else"])

    def loop(self, node: Node) -> None:
        self.statements(node.get("Cond", ()))
        self.statements(node.get("Do", ()))

    def each(self, node: Node) -> None:
        loop = node["Loop"]
        if loop["Type"] != "WordIter" or node.get("Select"):
            self.sink.doubt("a loop that evaluates or asks")
        else:
            for item in loop.get("Items", ()):
                self.words.walk(item)
            self.sink.command([Assign(loop["Name"]["Value"], Word("", ""))], [])
        self.statements(node.get("Do", ()))

    def case(self, node: Node) -> None:
        self.words.walk(node["Word"])
        for item in node.get("Items", ()):
            for pattern in item.get("Patterns", ()):
                self.words.walk(pattern)
            self.statements(item.get("Stmts", ()))

    def timed(self, node: Node) -> None:
        if "Stmt" in node:
            self.statement(node["Stmt"])

    def function(self, node: Node) -> None:
        self.sink.doubt(f"the line defines a function, {(node.get('Name') or {}).get('Value', '')}")
        self.statement(node["Body"])

    def declaration(self, node: Node) -> None:
        for item in node.get("Args", ()):
            self.words.walk(item.get("Value"))
            for element in (item.get("Array") or {}).get("Elems", ()):
                self.words.walk(element.get("Value"))
        self.sink.other(self.words.slice(node), "it sets variables", shapes_names=True)

    def arithmetic(self, node: Node) -> None:
        self.sink.doubt("arithmetic with variables evaluates what they hold")
        self._inner_words(node)

    def test(self, node: Node) -> None:
        text = self.words.slice(node)
        if self._understood(node.get("X")):
            self.sink.harmless(text)
        else:
            self.sink.other(text, "the test is not one of those in the table")
            self._inner_words(node)

    def coprocess(self, node: Node) -> None:
        self.sink.doubt("the line starts a coprocess")
        self.statement(node["Stmt"])

    def _understood(self, node: Node | None) -> bool:
        """Whether a `[[ … ]]` only compares text or looks at literal files, which count as read."""
        if node is None:
            return False
        match node["Type"]:
            case "ParenTest":
                return self._understood(node["X"])
            case "UnaryTest":
                if node["Op"] not in _TEST_OPERATORS:
                    return False
                if node["Op"] in {"!", "-z", "-n"}:
                    return self._understood(node["X"])
                word = self.words.word(node["X"])
                if not word.sure:
                    return False
                self.sink.redirect(word.path, writes=False)
                return True
            case "BinaryTest":
                known = node["Op"] in _TEST_OPERATORS
                return known and self._understood(node["X"]) and self._understood(node["Y"])
            case "Word":
                self.words.walk(node)
                return True
            case _:
                return False

    def _inner_words(self, node: Any) -> None:
        """Walk every word below `node`, wherever it is."""
        if isinstance(node, list):
            for item in node:
                self._inner_words(item)
        elif isinstance(node, Mapping):
            if "Parts" in node:
                self.words.walk(node)
                return
            for value in node.values():
                self._inner_words(value)
