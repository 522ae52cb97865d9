"""Rules: their syntax, and that each kind of pattern covers what it says and nothing more."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from novacode.authority.commands import analyse
from novacode.authority.rules import Decision, Rule, parse_rule
from novacode.errors import SettingsError
from novacode.workspace.paths import Workspace


def rule(text: str, decision: str = "allow") -> Rule:
    return parse_rule(text, decision, "--test")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("shell", Rule(Decision.ALLOW, "shell", None, "--test")),
        ("Bash(git log:*)", Rule(Decision.ALLOW, "shell", "git log:*", "--test")),
        ("bash(ls)", Rule(Decision.ALLOW, "shell", "ls", "--test")),
        ("Read", Rule(Decision.ALLOW, "read", None, "--test")),
        ("MultiEdit(src/**)", Rule(Decision.ALLOW, "edit", "src/**", "--test")),
        ("Edit(a)", Rule(Decision.ALLOW, "edit", "a", "--test")),
        ("WRITE(a)", Rule(Decision.ALLOW, "write", "a", "--test")),
        ("Glob", Rule(Decision.ALLOW, "glob", None, "--test")),
        ("Grep", Rule(Decision.ALLOW, "grep", None, "--test")),
        ("WebFetch(domain:example.org)", Rule(Decision.ALLOW, "fetch", "domain:example.org", "--test")),
        ("mcp__server__tool", Rule(Decision.ALLOW, "mcp__server__tool", None, "--test")),
        ("mcp__Server__Tool", Rule(Decision.ALLOW, "mcp__Server__Tool", None, "--test")),
        (" shell(echo (a) b) ", Rule(Decision.ALLOW, "shell", "echo (a) b", "--test")),
        ("shell(=ls *)", Rule(Decision.ALLOW, "shell", "=ls *", "--test")),
        ("*", Rule(Decision.ALLOW, "*", None, "--test")),
    ],
)
def test_a_rule_is_read_as_it_is_written(text: str, expected: Rule) -> None:
    assert rule(text) == expected


@pytest.mark.parametrize(
    "text", ["", "  ", "shell(", "shell)", "(ls)", "shell()", "shell( )", "shell(=)", "git log", "1a", "fetch(domain:)"]
)
def test_what_is_no_rule_is_refused_with_its_value_and_source(text: str) -> None:
    with pytest.raises(SettingsError) as caught:
        rule(text)
    assert repr(text.strip()) in str(caught.value)
    assert "--test" in str(caught.value)


def test_a_decision_that_is_none_is_refused() -> None:
    with pytest.raises(SettingsError, match="'maybe' is not a decision"):
        rule("shell", "maybe")


@given(
    st.sampled_from(["shell", "edit", "mcp__a__b"]),
    st.text(min_size=1).filter(lambda text: text.strip().removeprefix("=")),
)
def test_the_text_of_a_rule_is_read_back_as_the_same_rule(tool: str, pattern: str) -> None:
    """What an always-answer shows and stores means the same when it is loaded."""
    made = Rule(Decision.ALLOW, tool, pattern, "--test")
    assert rule(made.text) == made


COMMANDS = [
    # rule, line, whether an allow rule covers it, whether a deny rule does
    ("git log", "git log", True, True),
    ("git log", "git log -1", False, False),
    ("git log:*", "git log", True, True),
    ("git log:*", "git log -1", True, True),
    ("git log:*", "git logs", False, False),
    ("git log *", "git log", True, True),
    ("git log *", "git log --format='a b'", True, True),
    ("git log*", "git logs", True, True),
    ("git * main", "git push origin main", True, True),
    ("git * main", "git push main -f", False, False),
    ("*", "anything at all", True, True),
    ("=git log", "git log", True, True),
    ("=ls *", "ls x", False, False),
    ("git  log", "git log", True, True),
    ("git commit -m 'a b'", "git commit -m 'a b'", True, True),
    ('git commit -m "a b"', "git commit -m 'a b'", True, True),
    ("git commit -m 'a b'", "git commit -m a b", False, False),
    ("make test", "'make test'", False, True),
    ("rm *", "/bin/rm f", False, True),
    ("rm *", "../rm f", False, True),
    ("git push:*", "git --no-pager push", False, True),
    ("git push:*", "git -C x push -f", False, True),
    ("rm *", "X=1 rm f", False, True),
    ("X=1 rm f", "X=1 rm f", True, True),
    ("rm *", "rmdir x", False, False),
    ("ls", 'ls "$X"', False, False),
    ("ls:*", 'ls "$X"', True, True),
    ("ls -l:*", 'ls "$X"', False, False),
    ("* -l", 'ls "$X"', False, False),
]


@pytest.mark.parametrize(("pattern", "line", "allows", "denies"), COMMANDS)
def test_a_pattern_covers_commands(pattern: str, line: str, allows: bool, denies: bool) -> None:
    """Allow rules match strictly, deny rules also other spellings of the same command."""
    (command,) = analyse(line).commands
    covered = {decision: rule(f"shell({pattern})", decision).matches_command(command) for decision in ("allow", "deny")}
    assert covered == {"allow": allows, "deny": denies}


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    (tmp_path / "root" / "src").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "root")
    return Workspace.at(tmp_path / "link")


PATHS = [
    ("src/**", "src/a/b.py", True, True),
    ("src/**", "src", True, True),
    ("src/**", "srcs/a", False, False),
    ("src/*", "src/a.py", True, True),
    ("src/*", "src/a/b.py", False, True),
    ("src", "src/a.py", False, True),
    ("src/", "src/a.py", True, True),
    ("*.py", "a/b/c.py", True, True),
    ("*.py", "c.pyc", False, False),
    ("./a.txt", "a.txt", True, True),
    ("./a.txt", "x/a.txt", False, False),
    ("a.txt", "x/a.txt", True, True),
    ("**/.env", ".env", True, True),
    ("**/.env", "a/b/.env", True, True),
    ("**/.env", "a/.envx", False, False),
    ("a/**/b", "a/b", True, True),
    ("a/**/b", "a/x/y/b", True, True),
    ("a?c", "abc", True, True),
    ("a?c", "a/c", False, False),
    ("[a].txt", "a.txt", False, False),
    ("[a].txt", "[a].txt", True, True),
    ("Secret/**", "secret/key", False, True),
    ("=src/*", "src/a", False, False),
    ("=src/*", "src/*", True, True),
    ("a.b", "aXb", False, False),
]


@pytest.mark.parametrize(("pattern", "path", "allows", "denies"), PATHS)
def test_a_pattern_covers_paths(pattern: str, path: str, allows: bool, denies: bool, workspace: Workspace) -> None:
    """As in gitignore; an allow rule for a folder's name alone does not open the folder, a deny rule closes it."""
    resolved = workspace.root / path
    covered = {
        decision: rule(f"edit({pattern})", decision).matches_path(resolved, workspace) for decision in ("allow", "deny")
    }
    assert covered == {"allow": allows, "deny": denies}


def test_absolute_and_home_patterns_and_patterns_through_links(workspace: Workspace, tmp_path: Path) -> None:
    """The workspace may be reached through a link, and a rule written with the link's name means the same."""
    target = workspace.resolve("src/a.py")
    assert rule(f"edit({tmp_path}/link/src/**)").matches_path(target, workspace)
    assert rule(f"edit({tmp_path}/root/src/**)").matches_path(target, workspace)
    assert not rule(f"edit({tmp_path}/other/**)").matches_path(target, workspace)
    assert rule("read(~/**)").matches_path(Path.home().resolve() / "x", workspace)


@pytest.mark.parametrize(
    ("pattern", "host", "allows", "denies"),
    [
        ("domain:example.org", "example.org", True, True),
        ("domain:example.org", "EXAMPLE.org.", True, True),
        ("domain:example.org", "a.example.org", False, True),
        ("domain:*.example.org", "a.example.org", True, True),
        ("domain:example.org", "notexample.org", False, False),
        ("domain:example.org", "example.org.evil.com", False, False),
        ("example.org", "example.org", False, False),
    ],
)
def test_a_pattern_covers_hosts(pattern: str, host: str, allows: bool, denies: bool) -> None:
    covered = {decision: rule(f"fetch({pattern})", decision).matches_host(host) for decision in ("allow", "deny")}
    assert covered == {"allow": allows, "deny": denies}


@pytest.mark.parametrize(
    ("text", "tools"),
    [
        ("edit", {"edit", "write"}),
        ("write", {"write"}),
        ("read", {"read", "glob", "grep"}),
        ("grep", {"grep"}),
        ("shell", {"shell"}),
        ("mcp__a", {"mcp__a__b"}),
        ("mcp__a__*", {"mcp__a__b"}),
        ("mcp__*", {"mcp__a__b", "mcp__ab__c"}),
        ("*", {"edit", "write", "read", "glob", "grep", "shell", "mcp__a__b", "mcp__ab__c"}),
    ],
)
def test_a_rule_concerns_tools(text: str, tools: set[str]) -> None:
    known = ("edit", "write", "read", "glob", "grep", "shell", "mcp__a__b", "mcp__ab__c")
    assert {tool for tool in known if rule(text).concerns(tool)} == tools
