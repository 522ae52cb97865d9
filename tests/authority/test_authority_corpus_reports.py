"""Faults that users of other agents have reported, each with the rules and lines of the report."""

from __future__ import annotations

from pathlib import Path

import pytest

from novacode.authority import shfmt
from novacode.authority.commands import analyse
from novacode.authority.policy import Allow, Mode, Policy
from novacode.authority.rules import parse_rule
from novacode.tools.base import Effects
from novacode.values.ids import CallId
from novacode.values.parts import ToolCall
from novacode.workspace.paths import Workspace

pytestmark = pytest.mark.skipif(shfmt.find() is None, reason="the shell parser (shfmt) is not installed")


def allowed(rules: list[str], lines: list[str], root: Path) -> list[str]:
    """Return the lines that run without a question."""
    parsed = tuple(parse_rule(text.split(" ", 1)[1], text.split(" ", 1)[0], "--test") for text in rules)
    made, workspace = Policy(Mode.DEFAULT, parsed, analyse), Workspace.at(root)

    def runs(line: str) -> bool:
        call = ToolCall(CallId("c"), 0, "shell", {"command": line})
        return isinstance(made.judge(call, Effects("", command=line), workspace), Allow)

    return [line for line in lines if runs(line)]


def test_br_042_nothing_joined_to_an_allowed_prefix_runs(tmp_path: Path) -> None:
    joined = ["; touch P1", " && touch P2", " || touch P3", " | tee P4", " & touch P5", "\ntouch P6", " > P8"]
    lines = [f"git show HEAD{more}" for more in joined] + ["pwd && touch P7"]
    quoted = "git show --format='a && b'"
    assert allowed(["allow shell(git show *)", "allow shell(pwd)"], [*lines, quoted], tmp_path) == [quoted]


def test_br_043_a_wrapper_does_not_pass_a_deny_rule(tmp_path: Path) -> None:
    lines = [
        "true && rm f1", "( rm f2 )", "{ rm f3; }", "command rm f4", "env X=1 rm f5", "timeout 5 rm f6", "\\rm f7",
        "sh -c 'rm f8'", "if true; then rm f9; fi", "xargs rm < list",
    ]  # fmt: skip
    assert allowed(["deny shell(rm *)", "allow shell(*)"], lines, tmp_path) == []
    assert allowed(["allow shell", "deny shell(rm:*)"], lines, tmp_path) == []


def test_br_044_only_harmless_literal_assignments_are_left_out(tmp_path: Path) -> None:
    command = "node --check a.js"
    heads = ["MODE=`touch P1`", "MODE=$(touch P2)", 'MODE="$(touch P3)"', "PATH=./evil:$PATH", "LD_PRELOAD=./x.so"]
    heads += ["BASH_ENV=x", "GIT_DIR=x", "NODE_OPTIONS=x"]
    lines = [*(f"{head} {command}" for head in heads), command, f"LANG=C {command}"]
    assert allowed([f"allow shell({command})"], lines, tmp_path) == lines[-2:]


def test_br_045_substitutions_are_seen(tmp_path: Path) -> None:
    lines = [
        "git diff -- $(touch P1)", "git diff -- `touch P2`", "wc -l <(touch P3)", 'echo "${X:-$(touch P4)}"',
        "echo $'a\\'' ; touch P5", "wc -l <<HERE\n$(touch P6)\nHERE", "echo $((1+1))", "echo '$(not run)'",
    ]  # fmt: skip
    rules = ["allow shell(git diff *)", "allow shell(wc *)", "allow shell(echo *)"]
    assert allowed(rules, lines, tmp_path) == lines[-2:]


def test_br_046_options_that_write_take_a_command_out_of_the_read_only_table(tmp_path: Path) -> None:
    lines = [
        "find . -name '*.c' -exec touch P1 {} +", "find . -fprint P2", "find . -name x -delete", "sort -oP3 in.txt",
        "uniq in.txt P4", "sed -n 'w P5' in.txt", "sed -i s/a/b/ in.txt", "git diff --output=P6",
        "git branch -D feature", "git -c alias.x='!touch P7' x", "rg --pre ./script x",
        "awk 'BEGIN{system(\"touch P8\")}'",
    ]  # fmt: skip
    free = ["find . -name '*.c'", "sort in.txt", "git diff --stat"]
    assert allowed([], [*lines, *free], tmp_path) == free
