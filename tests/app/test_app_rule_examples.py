"""Examples beside a rule are tried when settings load; a wrong one stops every run, with all there is to know."""

from __future__ import annotations

from pathlib import Path

import pytest

from novacode.app.rule_store import RuleStore, personal_file
from novacode.app.settings import Places, load_settings
from novacode.authority import shfmt
from novacode.errors import SettingsError

needs_parser = pytest.mark.skipif(shfmt.find() is None, reason="the shell parser (shfmt) is not installed")


@pytest.fixture
def places(tmp_path: Path) -> Places:
    for name in ("home", "work/.novacode", "work/src"):
        (tmp_path / name).mkdir(parents=True)
    return Places(tmp_path / "home", tmp_path / "work")


def load(places: Places, decision: str, rule: str, **examples: list[str]) -> list[str]:
    """Load a user's file with one rule, and return the texts of the rules."""
    fields = "".join(f", {name} = {texts!r}" for name, texts in examples.items())
    places.user.write_text(f"[permissions]\n{decision} = [\n  'shell(true)',\n  {{ rule = {rule!r}{fields} }},\n]\n")
    return [found.text for found in load_settings(places, {}).rules]


@needs_parser
@pytest.mark.parametrize(
    ("decision", "rule", "match", "not_match"),
    [
        ("allow", "shell(make test)", ["make test", "cd src && make test"], ["make", "make test; rm", "make test >o"]),
        ("allow", "shell(git log:*)", ["git log", "git log -3 | cat"], ["git logs", "ls", "git push"]),
        ("deny", "shell(rm:*)", ["rm x", "ls; sudo rm -r x", "$(rm x)", "/bin/rm x"], ["git rm x", "echo rm"]),
        ("ask", "shell(git push:*)", ["git push", "X=1 git --no-pager push"], ["git pull", "git push-all"]),
        ("allow", "edit(src/**)", ["src/a.py", "./src/b/c.py"], ["docs/a.md", "/etc/hosts", "src/../x", ".env"]),
        ("deny", "read(**/.env)", [".env", "src/.ENV"], ["src/env.py"]),
        ("allow", "read(/etc/hosts)", ["/etc/hosts"], ["/etc/passwd", "src/a.py"]),
        ("deny", "write(*.lock)", ["src/x.lock"], ["src/x"]),
        ("allow", "fetch(domain:example.org)", ["https://example.org/x", "example.org"], ["https://a.example.org/"]),
        ("deny", "fetch(domain:example.org)", ["https://a.example.org/", "domain:example.org"], ["https://example.com"]),
        ("deny", "mcp__github", ["mcp__github__create_issue"], ["mcp__gitlab__x", "shell"]),
        ("allow", "mcp__a__*", ["mcp__a__read"], ["mcp__b__read"]),
    ],
)  # fmt: skip
def test_right_examples_are_nothing_to_speak_of(
    places: Places, decision: str, rule: str, match: list[str], not_match: list[str]
) -> None:
    assert load(places, decision, rule, match=match, not_match=not_match) == ["shell(true)", rule]


@needs_parser
@pytest.mark.parametrize(
    ("decision", "rule", "field", "text", "verdict"),
    [
        ("deny", "shell(rm -rf *)", "match", "rm -r -f x", "it comes to ask"),
        ("deny", "shell(rm:*)", "not_match", "ls; rm x", "it comes to deny (denied by the rule shell(rm:*)"),
        ("allow", "shell(make:*)", "match", "make > out.txt", "it comes to ask"),
        ("allow", "shell(make:*)", "not_match", "make clean", "it comes to allow"),
        ("allow", "shell(make:*)", "match", "make; 'unfinished", "it comes to ask (the line does not parse"),
        ("ask", "edit(secret/**)", "match", "secrets/a", "it comes to ask (it writes secrets/a"),
        ("allow", "mcp__github", "match", "mcp__gitlab__x", "it comes to ask"),
    ],
)
def test_a_wrong_example_is_an_error_with_file_line_rule_example_and_verdict(
    places: Places, decision: str, rule: str, field: str, text: str, verdict: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        load(places, decision, rule, **{field: [text]})
    message = str(caught.value)
    assert message.startswith(f"{places.user}:4: the {decision} rule {rule!r} has a wrong example: under `{field}`")
    assert repr(text) in message
    assert verdict in message
    assert message.endswith("Mend the rule or the example")


def test_one_example_may_stand_without_a_list(places: Places) -> None:
    places.user.write_text('[permissions]\nallow = [{ rule = "edit(src/**)", match = "src/a.py" }]\n')
    assert [rule.source for rule in load_settings(places, {}).rules] == [f"{places.user}:2"]


@pytest.mark.parametrize(
    "item",
    ["3", "{ match = ['ls'] }", "{ rule = 'shell(ls)', matches = ['ls'] }", "{ rule = 'shell(ls)', match = [1] }"],
)
def test_what_is_no_rule_is_told_with_what_one_looks_like(places: Places, item: str) -> None:
    places.user.write_text(f"[permissions]\ndeny = [{item}]\n")
    with pytest.raises(SettingsError, match=r"`permissions.deny` is .*it must be a list of rules, for example"):
        load_settings(places, {})


def test_a_variable_may_hold_examples_as_json(places: Places) -> None:
    text = '[{"rule": "edit(src/**)", "match": ["docs/a.md"]}]'
    with pytest.raises(SettingsError, match=r"^NOVACODE_PERMISSIONS_DENY: the deny rule .* has a wrong example"):
        load_settings(places, {"NOVACODE_PERMISSIONS_DENY": text})


def test_an_allow_rule_that_does_not_count_is_not_tried(places: Places) -> None:
    """The folder is not trusted: what it allows is left out, right or wrong. What it denies counts, and is tried."""
    project = places.project[0]
    project.write_text('[permissions]\nallow = [{ rule = "edit(src/**)", match = ["x"] }]\n')
    assert load_settings(places, {}).rules == ()
    project.write_text('[permissions]\ndeny = [{ rule = "edit(src/**)", match = ["x"] }]\n')
    with pytest.raises(SettingsError, match="wrong example"):
        load_settings(places, {})


def test_an_always_keeps_the_examples_that_somebody_has_added(places: Places) -> None:
    path = personal_file(places.home, places.cwd)
    path.parent.mkdir(parents=True)
    path.write_text('[permissions]\nallow = [{ rule = "edit(src/**)", match = ["src/a\\"b.py"], not_match = "x" }]\n')
    RuleStore(places.home, places.cwd).add("shell(make)")
    kept = '{ rule = "edit(src/**)", match = ["src/a\\"b.py"], not_match = "x" }'
    assert kept in path.read_text()
    assert [rule.text for rule in load_settings(places, {}).rules] == ["edit(src/**)", "shell(make)"]
