"""The policy: modes, precedence, places, and what is offered to be stored."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from novacode.authority.commands import analyse
from novacode.authority.explain import explain, explain_text, parse_call
from novacode.authority.policy import Allow, Ask, Deny, Mode, Policy, Verdict, parse_mode
from novacode.authority.rules import parse_rule
from novacode.errors import SettingsError, UsageError
from novacode.tools.base import Effects
from novacode.values.ids import CallId
from novacode.values.parts import ToolCall
from novacode.workspace.paths import Workspace


def policy(*rules: str, mode: Mode = Mode.DEFAULT) -> Policy:
    """Return a policy; each rule is written `decision rule`."""
    parsed = [parse_rule(text.split(" ", 1)[1], text.split(" ", 1)[0], f"rules:{n}") for n, text in enumerate(rules, 1)]
    return Policy(mode, tuple(parsed), analyse)


def shell(made: Policy, line: str, workspace: Workspace) -> Verdict:
    return made.judge(ToolCall(CallId("c"), 0, "shell", {"command": line}), Effects("", command=line), workspace)


def on_path(made: Policy, tool: str, path: str, workspace: Workspace) -> Verdict:
    resolved = (workspace.resolve(path),)
    effects = Effects("", writes=resolved) if tool in {"edit", "write"} else Effects("", reads=resolved)
    return made.judge(ToolCall(CallId("c"), 0, tool, {"path": path}), effects, workspace)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    (outside / "secret.txt").write_text("s")
    (root / "out").symlink_to(outside)
    (root / "inner").mkdir()
    (root / "in").symlink_to(root / "inner")
    return Workspace.at(root)


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("default", Mode.DEFAULT),
        ("acceptEdits", Mode.ACCEPT_EDITS),
        ("accept-edits", Mode.ACCEPT_EDITS),
        ("plan", Mode.PLAN),
        ("bypass", Mode.BYPASS),
        ("bypassPermissions", Mode.BYPASS),
    ],
)
def test_modes_are_spelled_in_both_ways(text: str, mode: Mode) -> None:
    assert parse_mode(text) is mode


def test_a_mode_that_is_none_is_refused_with_what_there_is() -> None:
    with pytest.raises(
        SettingsError, match=r"'auto' is not a permission mode; use default, accept-edits, plan, bypass"
    ):
        parse_mode("auto")


@pytest.mark.parametrize(
    ("tool", "path", "verdicts"),
    [
        # default, accept-edits, plan, bypass
        ("read", "a.txt", [Allow, Allow, Allow, Allow]),
        ("glob", ".", [Allow, Allow, Allow, Allow]),
        ("read", "in/a.txt", [Allow, Allow, Allow, Allow]),
        ("read", "out/secret.txt", [Ask, Ask, Ask, Allow]),
        ("read", "../x", [Ask, Ask, Ask, Allow]),
        ("read", "/etc/passwd", [Ask, Ask, Ask, Allow]),
        ("read", "~/.ssh/id_rsa", [Ask, Ask, Ask, Allow]),
        ("edit", "a.txt", [Ask, Allow, Deny, Allow]),
        ("write", "src/new/b.txt", [Ask, Allow, Deny, Allow]),
        ("write", "in/b.txt", [Ask, Allow, Deny, Allow]),
        ("write", "out/new.txt", [Ask, Ask, Deny, Allow]),
        ("edit", "out/../outside/secret.txt", [Ask, Ask, Deny, Allow]),
        ("write", ".git/config", [Ask, Ask, Deny, Allow]),
        ("write", "sub/.git/hooks/x", [Ask, Ask, Deny, Allow]),
        ("write", ".novacode/config.toml", [Ask, Ask, Deny, Allow]),
        ("write", ".env", [Ask, Ask, Deny, Allow]),
        ("write", "a/.ENV.local", [Ask, Ask, Deny, Allow]),
        ("write", "~/.ssh/authorized_keys", [Ask, Ask, Deny, Allow]),
        ("write", ".", [Ask, Ask, Deny, Allow]),
        ("write", ".github/x.yml", [Ask, Allow, Deny, Allow]),
    ],
)
def test_br_048_modes_and_places(tool: str, path: str, verdicts: list[type], workspace: Workspace) -> None:
    """Paths are judged where they lead: links and `..` resolved, a link that stays inside like any other path."""
    modes = (Mode.DEFAULT, Mode.ACCEPT_EDITS, Mode.PLAN, Mode.BYPASS)
    assert [type(on_path(policy(mode=mode), tool, path, workspace)) for mode in modes] == verdicts


def test_the_workspace_may_be_reached_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    linked = Workspace.at(tmp_path / "link")
    assert on_path(policy(), "read", str(tmp_path / "link" / "a"), linked) == Allow("reading in the workspace")


@pytest.mark.parametrize("order", list(itertools.permutations(["allow", "ask", "deny"])))
@pytest.mark.parametrize("pattern", ["", "(make)", "(*)", "(make:*)"])
def test_deny_beats_ask_beats_allow_in_any_order(order: tuple[str, ...], pattern: str, workspace: Workspace) -> None:
    def verdict(*decisions: str) -> type:
        return type(shell(policy(*(f"{decision} shell{pattern}" for decision in decisions)), "make", workspace))

    assert verdict(*order) is Deny
    assert verdict(*(decision for decision in order if decision != "deny")) is Ask
    assert verdict("allow") is Allow


@pytest.mark.parametrize("mode", list(Mode))
def test_deny_and_ask_rules_hold_in_every_mode(mode: Mode, workspace: Workspace) -> None:
    """Bypass skips questions nobody asked for by a rule; it does not skip rules."""
    assert isinstance(shell(policy("deny shell(ls:*)", mode=mode), "ls", workspace), Deny)
    assert isinstance(shell(policy("ask shell(ls:*)", mode=mode), "ls", workspace), Ask)
    assert isinstance(on_path(policy("deny read(a)", mode=mode), "read", "a", workspace), Deny)


def test_a_denial_names_the_rule_and_its_source(workspace: Workspace) -> None:
    made = policy("allow shell", "deny shell(rm *)")
    assert shell(made, "rm x", workspace) == Deny("denied by the rule shell(rm *) (rules:2)", "shell(rm *)", "rules:2")


def test_bypass_asks_where_a_deny_rule_cannot_be_checked(workspace: Workspace) -> None:
    made = policy("deny shell(rm *)", mode=Mode.BYPASS)
    lines = ["$X f", "sh script.sh", "python3 -c 1", "eval ls", "ls (", "make"]
    assert [type(shell(made, line, workspace)) for line in lines] == [Ask, Ask, Ask, Ask, Ask, Allow]
    assert [type(shell(policy(mode=Mode.BYPASS), line, workspace)) for line in lines] == [Allow] * 6


def test_a_rule_for_an_interpreter_by_name_holds_beside_a_deny_rule(workspace: Workspace) -> None:
    made = policy("deny shell(rm *)", "allow shell(python3 x.py)", "allow shell(*)")
    assert isinstance(shell(made, "python3 x.py", workspace), Allow)
    assert isinstance(shell(made, "python3 y.py", workspace), Ask)


def test_what_cannot_be_looked_into_can_be_allowed_by_name(workspace: Workspace) -> None:
    """The question that a deny rule causes beside a wide allow rule offers the way out of it."""
    made = policy("deny shell(rm *)", "allow shell(*)")
    verdict = shell(made, "python3 y.py", workspace)
    assert isinstance(verdict, Ask)
    assert [rule.text for rule in verdict.rule_to_store] == ["shell(python3 y.py)"]
    assert isinstance(shell(made.with_rule(verdict.rule_to_store[0]), "python3 y.py", workspace), Allow)


def test_br_047_always_stores_one_exact_rule_for_each_command(workspace: Workspace) -> None:
    """The same line passes afterwards; the verb of one of its parts is not free."""
    made = policy()
    line = "make check && mv out dist"
    verdict = shell(made, line, workspace)
    assert isinstance(verdict, Ask)
    assert [rule.text for rule in verdict.rule_to_store] == ["shell(make check)", "shell(mv out dist)"]
    assert verdict.would_allow == "would be allowed by --allow 'shell(make check)' --allow 'shell(mv out dist)'"
    for rule in verdict.rule_to_store:
        made = made.with_rule(rule)
    lines = [line, "mv notes elsewhere", "make publish", "make check", "make check; mv out dist; rm x"]
    assert [type(shell(made, one, workspace)) for one in lines] == [Allow, Ask, Ask, Allow, Ask]


STORABLE = [
    "make", "make -j4 all", "git commit -m 'a b'", "rm build/*.o", "ls > P", "make | tee log", "X=1 make",
    "cat /etc/passwd", "cat < /etc/passwd", "grep '=' x | make", "echo a >> 'b c'",
    "ls > ../x", "make 2> err && make install", "sh -c 'make; touch x'", "sudo rm x", "nohup make", "=x y",
    "printf '%s (x)' a; make '(b)'", "make '*'", "ls > '*'", "ls > a.txt",
]  # fmt: skip


@pytest.mark.parametrize("line", STORABLE)
def test_what_is_stored_allows_the_same_line(line: str, workspace: Workspace) -> None:
    """Through their text, too: a stored rule is read back from a file."""
    verdict = shell(policy(), line, workspace)
    assert isinstance(verdict, Ask)
    assert verdict.rule_to_store
    made = policy(*(f"allow {rule.text}" for rule in verdict.rule_to_store))
    assert isinstance(shell(made, line, workspace), Allow)


# Rules are offered and taken back one a line: with its line breaks the first would be three, one of them `shell(*)`.
BROKEN = ["touch 'x)\nshell(*)\nshell(y'", "git commit -m 'two\nlines'"]


@pytest.mark.parametrize(
    "line", ["$X", "rm $X", 'rm "$X"', "xargs rm", "f() { ls; }", "ls (", "eval ls", "ls; rm $X", *BROKEN]
)
def test_nothing_is_stored_that_would_mean_more_than_it_says(line: str, workspace: Workspace) -> None:
    verdict = shell(policy(), line, workspace)
    assert isinstance(verdict, Ask)
    assert (verdict.rule_to_store, verdict.would_allow) == ((), "")


@pytest.mark.parametrize(
    ("tool", "path", "text"),
    [
        ("edit", "src/a.py", "edit(src/a.py)"),
        ("write", "a.py", "edit(./a.py)"),
        ("read", "/etc/passwd", "read(/etc/passwd)"),
        ("write", ".git/config", "edit(.git/config)"),
    ],
)
def test_always_for_a_file_stores_that_file(tool: str, path: str, text: str, workspace: Workspace) -> None:
    verdict = on_path(policy(), tool, path, workspace)
    assert isinstance(verdict, Ask)
    assert [rule.text for rule in verdict.rule_to_store] == [text]
    made = policy(f"allow {text}")
    assert isinstance(on_path(made, tool, path, workspace), Allow)
    assert isinstance(on_path(made, tool, f"{path}2", workspace), Ask)


SEARCHES = [
    ("grep -r foo .", Ask), ("grep -r foo", Ask), ("grep -r foo src", Allow), ("rg foo", Ask), ("rg foo src", Allow),
    ("git grep foo", Ask), ("grep foo a.txt", Allow), ("ls -R", Allow), ("cat a.txt | grep foo", Allow),
    ("grep -r foo secret", Deny), ("diff src secret", Deny), ("diff src .", Deny),
]  # fmt: skip


@pytest.mark.parametrize("mode", [Mode.DEFAULT, Mode.BYPASS])
@pytest.mark.parametrize(("line", "verdict"), SEARCHES)
def test_a_search_of_a_folder_is_not_free_of_a_rule_for_what_is_in_it(
    mode: Mode, line: str, verdict: type, workspace: Workspace
) -> None:
    """`grep -r` from above showed what no call was to read."""
    for name in ("src", "secret"):
        (workspace.root / name).mkdir(exist_ok=True)
    assert isinstance(shell(policy("deny read(secret/**)", mode=mode), line, workspace), verdict)


@pytest.mark.parametrize(
    ("rule", "places"),
    [
        ("read(secret/**)", [".", "secret", "secret/a"]),
        ("read(.env)", [".", "src", "secret", "secret/a"]),
        ("read(=secret/k)", [".", "secret"]),
        ("read(secret/k)", [".", "secret"]),
        ("read(/nowhere/**)", []),
    ],
)
def test_where_a_rule_may_cover_something_below(rule: str, places: list[str], workspace: Workspace) -> None:
    found = parse_rule(rule, "deny", "t")
    tried = [".", "src", "secret", "secret/a"]
    assert [one for one in tried if found.may_match_below(workspace.resolve(one), workspace)] == places


def test_a_file_name_cannot_smuggle_in_rules(workspace: Workspace) -> None:
    """The name `x)`, line break, `shell(*)` would be kept as a rule for every command."""
    verdict = on_path(policy(), "write", "x)\nshell(*)\nedit(y", workspace)
    assert isinstance(verdict, Ask)
    assert (verdict.rule_to_store, verdict.would_allow) == ((), "")


def test_hosts_subjects_and_unknown_tools(workspace: Workspace) -> None:
    """What is not known to be harmless asks; what is stored names the host or the call."""

    def judged(made: Policy, name: str, effects: Effects) -> Verdict:
        return made.judge(ToolCall(CallId("c"), 0, name, {}), effects, workspace)

    fetch = Effects("", hosts=("example.org",))
    asked = judged(policy(), "fetch", fetch)
    assert isinstance(asked, Ask)
    assert [rule.text for rule in asked.rule_to_store] == ["fetch(domain:example.org)"]
    assert isinstance(judged(policy("allow fetch(domain:example.org)"), "fetch", fetch), Allow)
    assert isinstance(judged(policy("allow fetch(domain:a.org)"), "fetch", fetch), Ask)
    assert isinstance(judged(policy("allow fetch", "deny fetch(domain:org)"), "fetch", fetch), Deny)
    mcp = Effects("")
    asked = judged(policy(), "mcp__a__b", mcp)
    assert isinstance(asked, Ask)
    assert [rule.text for rule in asked.rule_to_store] == ["mcp__a__b"]
    assert isinstance(judged(policy("allow mcp__a"), "mcp__a__b", mcp), Allow)
    assert isinstance(judged(policy(mode=Mode.PLAN), "mcp__a__b", mcp), Deny)
    assert isinstance(judged(policy(), "edit", Effects("")), Ask)
    assert judged(policy(), "todo", Effects("")) == Allow("reading nothing but what the session holds")


def test_rules_of_file_tools_see_redirections(workspace: Workspace) -> None:
    """A write is a write, whichever tool does it."""
    assert isinstance(shell(policy("allow edit(P)"), "ls > P", workspace), Allow)
    assert isinstance(shell(policy("allow edit(P)"), "ls > Q", workspace), Ask)
    assert isinstance(shell(policy("allow shell", "deny edit(P)"), "ls > P", workspace), Deny)
    assert isinstance(shell(policy("allow shell", "deny write(P)"), "ls | tee P", workspace), Deny)
    assert isinstance(shell(policy("allow shell", "ask read(P)"), "cat P", workspace), Ask)
    assert isinstance(shell(policy("allow shell(git show:*)"), "git show > P", workspace), Ask)


ALLOWED = ("git status", "make test", "echo 'a && b'", "true")
DENIED = (
    "rm f",
    "'rm' f",
    "/bin/rm -rf x",
    "env rm f",
    "sh -c 'rm f'",
    "timeout 5 rm f",
    "touch P",
    "git push",
    "xargs rm",
)
SHAPES = (
    "{a}; {d}", "{d}; {a}", "{a} && {d}", "{a} || {d}", "{d} || {a}", "{a} | {d}", "{a} |& {d}", "{a} & {d}",
    "{d} & {a}", "{a}\n{d}", "{a} &&\n{d}", "( {a}; {d} )", "{{ {a}; {d}; }}", "{a}; ( {d} )", "if {a}; then {d}; fi",
    "if {d}; then {a}; fi", "if {a}; then {a}; else {d}; fi", "while {a}; do {d}; done", "until {d}; do {a}; done",
    "for x in 1 2; do {a}; {d}; done", "case a in a) {a};; *) {d};; esac", "echo $({d})", 'echo "$({d})"', "echo `{d}`",
    "{a} < <({d})", "{a} > >({d})", "cat <<E\n$({d})\nE", "cat <<-E\n\t$({d})\n\tE", "! {d}", "time {d}",
    "{a} # x\n{d}", "[[ -n $({d}) ]] && {a}", "x=$({d}) {a}", "f() {{ {d}; }}; {a}", "{d} 2>/dev/null", "LANG=C {d}",
    "nice {d}", "{a} 2>&1 | {d}", "echo $(( $({d}) ))", "echo ${{x:-$({d})}}", "coproc {d}", "{d} </dev/null &",
)  # fmt: skip


@settings(deadline=None, max_examples=150)
@given(st.data())
def test_no_composition_with_a_denied_command_is_ever_allowed(data: st.DataObject) -> None:
    """Whatever joins, nests or wraps it, and with a rule that allows everything beside."""
    line = data.draw(st.sampled_from(DENIED))
    for _ in range(data.draw(st.integers(1, 3))):
        # Backquotes do not nest: unescaped, the inner ones end the outer.
        shape = data.draw(st.sampled_from(SHAPES if "`" not in line else [one for one in SHAPES if "`" not in one]))
        line = shape.format(a=data.draw(st.sampled_from(ALLOWED)), d=line)
    rules = ("deny shell(rm:*)", "deny shell(touch:*)", "deny shell(git push *)")
    everything = data.draw(st.sampled_from(["allow shell(*)", "allow shell", "allow shell(echo *)"]))
    mode = data.draw(st.sampled_from(list(Mode)))
    verdict = shell(policy(*rules, everything, mode=mode), line, Workspace(Path("/nowhere")))
    assert not isinstance(verdict, Allow), line


def test_explain_tells_the_rule_and_where_it_stands(workspace: Workspace) -> None:
    made = policy("allow shell(git:*)", "deny shell(git push:*)")
    call = parse_call("Bash(git push | tee log)")
    assert call == ToolCall(CallId("explain"), 0, "shell", {"command": "git push | tee log"})
    effects = Effects("", command="git push | tee log")
    assert explain(made, call, effects, workspace) == {
        "decision": "deny",
        "rule": "shell(git push:*)",
        "source": "rules:2",
        "reason": "denied by the rule shell(git push:*) (rules:2)",
        "stores": [],
        "commands": [
            {"text": "git push", "read_only": False, "reason": "git push is not in the table"},
            {"text": "tee log", "read_only": True, "reason": ""},
        ],
        "writes": ["log"],
    }
    assert explain_text(made, call, effects, workspace).startswith("deny: denied by the rule shell(git push:*)")


def test_explain_tells_the_mode_and_what_would_allow(workspace: Workspace) -> None:
    made = policy()
    told = explain(made, parse_call("shell(make)"), Effects("", command="make"), workspace)
    assert (told["decision"], told["rule"], told["source"]) == ("ask", None, "mode default")
    assert told["stores"] == ["shell(make)"]
    told = explain(policy("allow shell(make)"), parse_call("shell(make)"), Effects("", command="make"), workspace)
    assert (told["decision"], told["rule"], told["source"]) == ("allow", "shell(make)", "rules:1")
    text = explain_text(made, parse_call("shell(make)"), Effects("", command="make"), workspace)
    assert "allow it with --allow 'shell(make)'" in text


def test_what_is_no_call_is_refused() -> None:
    with pytest.raises(UsageError, match="'git push' is not a call"):
        parse_call("git push")
