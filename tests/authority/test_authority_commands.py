"""Taking shell lines apart: the strict lexer, the parser, and what happens where the parser fails."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from novacode.authority import readonly, shfmt
from novacode.authority.analysis import Analysis
from novacode.authority.commands import analyse, analyse_with
from novacode.authority.words import plain_words


def texts(analysis: Analysis) -> list[str]:
    return [command.text for command in analysis.commands]


@given(st.text(alphabet="ab-=/. '\"\\$`;|&<>()*?[]{}~#!\n\t\u00e4\u00a0", max_size=30))
def test_the_strict_lexer_reads_as_the_shell_does_or_not_at_all(line: str) -> None:
    """What it takes is quoting only, so the standard library's reading of a POSIX line is the same."""
    words = plain_words(line)
    if words is not None:
        assert [word.value for word in words] == shlex.split(line)
        assert not set(re.sub(r"'[^']*'|\"[^\"]*\"", "", line)) & set("\\$`;|&<>()*?[]{}~#!\n")


@settings(deadline=None, max_examples=60)
@given(st.lists(st.text(alphabet="ab-/.= '\";&|$*", max_size=6), min_size=1, max_size=4))
def test_lexer_and_parser_agree(values: list[str]) -> None:
    """A line of quoted words is one command with these words, whichever of the two reads it."""
    line = " ".join(["cmd", *(shlex.quote(value) for value in values)])
    analysis = analyse(line)
    assert [command.words for command in analysis.commands] == [("cmd", *values)]
    parsed = analyse(f"{line} # parsed")
    assert [command.words for command in parsed.commands] == [("cmd", *values)]


@settings(deadline=None, max_examples=150)
@given(st.text(max_size=40) | st.text(alphabet="ls rm$(){}[]`'\"\\;|&<>\n#=!*x1", max_size=40))
def test_no_line_raises(line: str) -> None:
    """Whatever it is, it is taken apart or unparsed; and one that is not is never called read-only."""
    analysis = analyse(line)
    assert not (analysis.unparsed and analysis.read_only)


def test_without_a_parser_only_plain_words_can_be_judged() -> None:
    assert analyse_with("git log --format='%h %s' -5", None).read_only
    for line in ("ls | wc", "ls > x", "X=1 ls", "echo $X", "ls *", "time ls", "ls; rm x", "ls\nrm x", "ls ~"):
        analysis = analyse_with(line, None)
        assert analysis.unparsed == "there is no shell parser (shfmt), so only lines of plain words can be judged", line


@pytest.mark.parametrize(
    "tree",
    [
        {"Type": "File", "Stmts": [{"Cmd": {"Type": "New"}}]},
        {"Type": "File", "Stmts": [{"New": 1}]},
        {"Type": "File", "Stmts": [{"Cmd": {"Type": "CallExpr", "Args": [{"Parts": [{"Type": "Lit"}]}]}}]},
        {"Type": "File", "Stmts": [{"Cmd": {"Type": "Block", "Hidden": {"Type": "CallExpr"}, "Stmts": []}}]},
        {"Type": "File", "Stmts": 3},
        {"Type": "File", "Stmts": [None]},
    ],
)
def test_a_tree_of_another_parser_is_not_guessed_at(tree: dict[str, object]) -> None:
    """Unknown nodes, fields and commands in unknown places make the line unparsed."""
    assert analyse_with("ls | ls", lambda _line: tree).unparsed is not None


def refuse(_line: str) -> dict[str, object]:
    raise shfmt.SyntaxRefused("the line could not be parsed: too slow")


def test_a_parser_that_fails_makes_the_line_unparsed() -> None:
    assert analyse_with("ls | ls", refuse) == Analysis(unparsed="the line could not be parsed: too slow")


def fake_parser(folder: Path, script: str) -> str:
    program = folder / "shfmt"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return str(program)


@pytest.mark.parametrize("script", ["exit 3", "echo nonsense", "echo '[]'", "echo '{}'", "kill -9 $$"])
def test_a_broken_parser_refuses(script: str, tmp_path: Path) -> None:
    with pytest.raises(shfmt.SyntaxRefused):
        shfmt.parse("ls | ls", fake_parser(tmp_path, script))


def test_a_parser_that_is_not_there_refuses(tmp_path: Path) -> None:
    with pytest.raises(shfmt.SyntaxRefused, match="could not be parsed"):
        shfmt.parse("ls", str(tmp_path / "none"))


@pytest.mark.parametrize(
    "line",
    [
        "touch P\r\x1b[2Kgit status",
        "ls\u200b -la",
        "ls\u00a0-la",
        "echo \u202e gpj",
        "ls\x00",
        "ls \x7f",
        "ls\u2028rm",
        "ls \ud800",
    ],
)
def test_characters_that_cannot_be_seen_make_a_line_unparsed(line: str) -> None:
    """br 051: what a person reads and what a shell does would differ."""
    assert analyse(line).unparsed == "the line has control characters or blanks that cannot be seen"


def test_a_lone_surrogate_makes_a_line_unparsed() -> None:
    assert analyse("ls \ud800").unparsed is not None


def test_long_and_deep_lines_are_unparsed() -> None:
    assert analyse("echo " + "a" * 20_000).unparsed is not None
    line = "ls | ls"
    for _ in range(7):
        line = f"sh -c {shlex.quote(line)}"
    assert "too deep" in (analyse(line).unparsed or "")


def test_every_command_is_found_in_the_order_written() -> None:
    line = "FOO=1 git status && rm -rf x; $(curl a) | sh"
    assert texts(analyse(line)) == ["FOO=1 git status", "rm -rf x", "curl a", "$(curl a)", "sh"]


def test_reads_and_writes_are_told() -> None:
    analysis = analyse("cd src && cat a.py < b.py | tee c > d 2>> /tmp/e")
    assert analysis.reads == ("src", "a.py", "src/a.py", "b.py", "src/b.py")
    assert set(analysis.writes) == {"c", "src/c", "d", "src/d", "/tmp/e"}


def test_a_quoted_tilde_is_an_ordinary_character() -> None:
    assert analyse("cat '~/x'").reads == ("./~/x",)
    assert analyse("cat ~/x").reads == ("~/x",)
    assert analyse("ls > '~'").writes == ("./~",)


def test_empty_lines_do_nothing() -> None:
    assert analyse("") == analyse(" \n\t ") == Analysis()


def test_the_documentation_names_every_read_only_command() -> None:
    page = Path(__file__).parents[2] / "docs" / "permissions.md"
    missing = [name for name in readonly.NAMES if f"`{name}`" not in page.read_text()]
    assert missing == []
