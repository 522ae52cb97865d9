"""Hooks at the command line: with real runs, and tried out on a sample."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from doubles.command_line import Ended, Place

from novacode.cli import hooks_cmd

pytestmark = pytest.mark.timeout(120)


def _script(*turns: tuple[str, dict[str, Any]]) -> str:
    """Return a script in which each turn is one call, and the last reply calls nothing."""
    steps = [f"{{ call = {json.dumps(name)}, arguments = {{ {_table(arguments)} }} }}" for name, arguments in turns]
    return "".join(f"[[turn]]\nsteps = [ {step} ]\n" for step in (*steps, '{ text = "Done." }'))


def _table(arguments: dict[str, Any]) -> str:
    return ", ".join(f"{key} = {json.dumps(value)}" for key, value in arguments.items())


class Hooked(Place):
    """A place whose person has hooks."""

    def hooks(self, **events: list[dict[str, Any]]) -> None:
        (self.root / "home").mkdir(exist_ok=True)
        (self.root / "home/hooks.json").write_text(json.dumps({"hooks": events}))

    def go(self, *turns: tuple[str, dict[str, Any]], format_: str = "json") -> Ended:
        (self.root / "task.toml").write_text(_script(*turns))
        model = f"script:{self.root / 'task.toml'}"
        return self.run("run", "-m", model, "--yolo", "--output-format", format_, "go")


def _on(command: str, matcher: str = "", **more: Any) -> list[dict[str, Any]]:
    return [{"matcher": matcher, "hooks": [{"type": "command", "command": command, **more}]}]


@pytest.fixture
def place(tmp_path: Path) -> Hooked:
    return Hooked(tmp_path)


def test_a_guard_refuses_and_the_result_object_says_so(place: Hooked) -> None:
    place.hooks(PreToolUse=_on("echo not here >&2; exit 2", "Bash"))
    ended = place.go(("shell", {"command": "touch P"}))
    assert (ended.code, (place.work / "P").exists()) == (0, False)
    (denial,) = ended.result["permission_denials"]
    assert (denial["tool_name"], denial["tool_input"]) == ("shell", {"command": "touch P"})
    assert "not here" in denial["reason"]


def test_a_refused_prompt_ends_the_run_before_it_begins(place: Hooked) -> None:
    place.hooks(UserPromptSubmit=_on("echo no prompts today >&2; exit 2"))
    ended = place.go(("shell", {"command": "touch P"}))
    result = ended.result
    assert (ended.code, result["subtype"], result["terminal_reason"]) == (1, "error_refusal", "hook")
    assert (result["num_turns"], result["run_id"], (place.work / "P").exists()) == (0, "s-deterministic-r1", False)
    assert "a hook refused the prompt: no prompts today" in ended.err


@pytest.mark.parametrize("format_", ["json", "stream-json", "events"])
def test_br_151_a_hook_that_prints_is_not_heard_on_stdout(place: Hooked, format_: str) -> None:
    """Every line of stdout is JSON of ours; a hook's own text is nowhere but where the schema puts it."""
    events = ("PostToolUse", "Stop", "SessionEnd", "Notification")
    place.hooks(**{event: _on(f"echo OUT-{event}; echo ERR-{event} >&2") for event in events})
    ended = place.go(("shell", {"command": "true"}), format_=format_)
    lines = [json.loads(line) for line in ended.out.splitlines()]
    assert (ended.code, all(isinstance(line, dict) for line in lines)) == (0, True)
    assert "OUT-" not in json.dumps([line for line in lines if line.get("type") != "hook_ran"])


def test_the_events_tell_which_hooks_ran_the_same_way_every_time(place: Hooked) -> None:
    """Two runs give the same bytes though hooks are real processes that run at the same time."""
    place.hooks(
        PreToolUse=[*_on("sleep 0.1", "Bash"), *_on("true")],
        PostToolUse=_on("echo lint >&2; exit 2", "Bash"),
        SessionStart=_on("echo context"),
    )
    first = place.go(("shell", {"command": "echo hi"}), format_="events")
    assert place.go(("shell", {"command": "echo hi"}), format_="events").out == first.out
    told = [line for line in map(json.loads, first.out.splitlines()) if line["type"] == "hook_ran"]
    assert [(one["event"], one["command"], one["outcome"], one["seconds"]) for one in told] == [
        ("SessionStart", "echo context", "pass", 0.0),
        ("PreToolUse", "sleep 0.1", "pass", 0.0),
        ("PreToolUse", "true", "pass", 0.0),
        ("PostToolUse", "echo lint >&2; exit 2", "deny", 0.0),
    ]


def test_what_a_formatter_makes_of_a_file_is_taken_back_with_the_call(place: Hooked) -> None:
    """Its change belongs to the call after which it ran: a rewind finds the file as it was left."""
    (place.work / "a.txt").write_text("before\n")
    place.hooks(PostToolUse=_on("sed -i s/after/AFTER/ a.txt", "Edit|Write"))
    assert place.go(("read", {"path": "a.txt"}), ("edit", {"path": "a.txt", "old": "before", "new": "after"})).code == 0
    assert (place.work / "a.txt").read_text() == "AFTER\n"
    rewound = place.run("rewind", "--json", "--yes")
    assert (rewound.code, (place.work / "a.txt").read_text()) == (0, "before\n"), rewound.err


@pytest.mark.skipif(shutil.which("jq") is None, reason="its hook is written with jq, as many are")
def test_sessions_start_and_end(place: Hooked) -> None:
    log = "jq -r '[.hook_event_name, .source // .reason, .model] | @tsv' >> log.tsv"
    place.hooks(SessionStart=_on(log), SessionEnd=_on(log))
    assert place.go().code == 0
    model = "script:task.toml"
    lines = [line.split("\t") for line in (place.work / "log.tsv").read_text().splitlines()]
    assert lines == [["SessionStart", "startup", model], ["SessionEnd", "other", model]]


def test_hooks_that_cannot_be_read_end_it_before_it_begins(place: Hooked) -> None:
    place.hooks(PreToolUsee=_on("true"))
    ended = place.go(("shell", {"command": "touch P"}))
    assert (ended.code, (place.work / "P").exists()) == (52, False)
    assert "`event` is 'PreToolUsee', which is no event. Did you mean PreToolUse?" in ended.err


# --- novacode hooks ----------------------------------------------------------------------------------------------


class Tried:
    """`novacode hooks` in a folder, with hooks in the home folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "home").mkdir()

    def write(self, **events: list[dict[str, Any]]) -> None:
        (self.root / "home/hooks.json").write_text(json.dumps(events))

    def __call__(self, *arguments: str, code: int = 0) -> Result:
        result = CliRunner().invoke(
            hooks_cmd.command, [*arguments, "-C", str(self.root)], catch_exceptions=False, standalone_mode=False
        )
        ended = result.return_value if result.exception is None else result.exit_code
        assert (ended or 0) == code, result.output
        return result


@pytest.fixture
def tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tried:
    for name in ("HOME", "NOVACODE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    return Tried(tmp_path)


def test_hooks_are_listed_in_the_order_of_their_answers(tried: Tried) -> None:
    tried.write(PreToolUse=_on("./guard.sh", "Bash", timeout=5), Stop=_on("./tests.sh"))
    source = str(tried.root / "home/hooks.json")
    assert tried("list").stdout == (
        f"PreToolUse  Bash  ./guard.sh\n  5 s, on failure deny  ({source})\n"
        f"Stop  *  ./tests.sh\n  60 s, on failure deny  ({source})\n"
    )
    rows = json.loads(tried("list", "--json").stdout)
    assert [(row["event"], row["command"], row["matcher"]) for row in rows] == [
        ("PreToolUse", "./guard.sh", "Bash"),
        ("Stop", "./tests.sh", ""),
    ]


def test_a_guard_is_tried_on_a_sample_that_does_not_run(tried: Tried) -> None:
    tried.write(PreToolUse=_on("grep -q touch && { echo no touching >&2; exit 2; }; exit 0", "Bash"))
    text = tried("test", "PreToolUse", "--input", f'{{"command": "touch {tried.root}/P"}}').stdout
    assert '"tool_name":"Bash"' in text
    assert "  stderr no touching\n  exit   2\n" in text
    assert text.endswith("together: deny Bash (no touching)\n")
    assert not (tried.root / "P").exists()
    assert tried("test", "pretooluse").stdout.endswith("together: pass Bash\n")


def test_a_rewrite_is_shown_as_it_would_go_on(tried: Tried) -> None:
    rewrite = '{"hookSpecificOutput": {"updatedInput": {"file_path": "/b", "content": "x"}}}'
    tried.write(PreToolUse=_on(f"printf %s '{rewrite}'", "Write"))
    text = tried("test", "PreToolUse", "--tool", "write").stdout
    assert text.endswith('it would go on to permission as {"file_path": "/b", "content": "x"}\n')


def test_a_hook_that_fails_is_told_by_the_exit_code(tried: Tried) -> None:
    tried.write(PreToolUse=_on("exit 3"))
    text = tried("test", "PreToolUse", code=1).stdout
    assert "warning: hook `exit 3` (PreToolUse): it ended with exit code 3; that is a no" in text


@pytest.mark.parametrize(
    ("event", "words"),
    [
        ("PostToolUse", "behind the result the model reads '\\nA hook objects: said'"),
        ("PostToolUseFailure", "behind the result the model reads '\\nA hook objects: said'"),
        ("UserPromptSubmit", "the prompt is refused (said)"),
        ("Stop", "the model is told to go on: said"),
        ("SessionStart", "the context ''"),
        ("SessionEnd", "deny after"),
        ("PreCompact", "deny after"),
        ("Notification", "deny after"),
    ],
)
def test_every_event_can_be_tried(tried: Tried, event: str, words: str) -> None:
    tried.write(**{event: _on("echo said >&2; exit 2")})
    assert words in tried("test", event).stdout


def test_no_hook_is_for_it(tried: Tried) -> None:
    tried.write(PreToolUse=_on("exit 2", "Edit"))
    assert tried("test", "PreToolUse").stdout == "No hook is for this.\ntogether: pass Bash\n"


def test_a_sample_that_is_no_object_is_a_usage_error(tried: Tried) -> None:
    result = CliRunner().invoke(hooks_cmd.command, ["test", "PreToolUse", "--input", "[1]", "-C", str(tried.root)])
    assert (result.exit_code, "--input is '[1]': it is no JSON object" in result.output) == (2, True)
