"""`novacode rewind` as a person uses it: after real runs of the command line, in a folder of its own."""

from __future__ import annotations

import fcntl
import json
import signal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from doubles.command_line import Ended, Place

from novacode.cli.rewind_cmd import command

pytestmark = pytest.mark.timeout(120)


def _call(name: str, **arguments: Any) -> str:
    return "{ call = " + json.dumps(name) + ", arguments = { " + _table(arguments) + " } }"


def _table(arguments: dict[str, Any]) -> str:
    return ", ".join(f"{key} = {json.dumps(value)}" for key, value in arguments.items())


def _turns(*turns: str) -> str:
    """Return a script in which each of `turns` calls something, and the last reply calls nothing."""
    return "".join(f"[[turn]]\nsteps = [ {turn} ]\n" for turn in (*turns, '{ text = "Done." }'))


class Work(Place):
    """Runs scripts and rewinds them."""

    def go(self, script: str, *more: str) -> Ended:
        (self.root / "task.toml").write_text(script)
        model = f"script:{self.root / 'task.toml'}"
        return self.run("run", "-m", model, "--yolo", "--output-format", "json", *more, "go")

    def rewind(self, *arguments: str) -> dict[str, Any]:
        """Rewind in this process, which is quicker; what is refused needs a process of its own."""
        environ = {"NOVACODE_HOME": str(self.root / "home")}
        ended = CliRunner(env=environ).invoke(
            command, ["--json", "-C", str(self.work), *arguments], catch_exceptions=False, standalone_mode=False
        )
        return {"code": ended.return_value, **json.loads(ended.stdout)}

    def files(self) -> dict[str, str]:
        return {
            str(path.relative_to(self.work)): path.read_text() if path.is_file() else "/"
            for path in sorted(self.work.rglob("*"))
        }

    def session(self) -> list[dict[str, Any]]:
        (path,) = (self.root / "home/sessions").glob("*/*.jsonl")
        return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture
def work(tmp_path: Path) -> Work:
    made = Work(tmp_path)
    (made.work / "old.txt").write_text("a\n")
    return made


_THREE_TURNS = _turns(
    _call("write", path="sub/new.txt", content="1\n"),
    _call("shell", command="sed -i s/a/b/ old.txt; echo x > new3.txt"),
    _call("shell", command="rm new3.txt; mkdir -p deep/er"),
)


def test_br_172_a_rewind_gives_back_the_tree_before_the_run(work: Work) -> None:
    assert work.go(_THREE_TURNS).code == 0
    assert work.files() == {"deep": "/", "deep/er": "/", "old.txt": "b\n", "sub": "/", "sub/new.txt": "1\n"}
    report = work.rewind("--yes")
    assert (report["code"], report["failed"], report["rewind"]) == (0, {}, "rewind-1")
    assert work.files() == {"old.txt": "a\n"}
    assert work.rewind("--yes", "--undo")["code"] == 0
    assert work.files() == {"deep": "/", "deep/er": "/", "old.txt": "b\n", "sub": "/", "sub/new.txt": "1\n"}


def test_back_to_before_a_turn_and_before_a_call(work: Work) -> None:
    work.go(_THREE_TURNS)
    work.rewind("--yes", "--to-turn", "3")
    assert work.files() == {"new3.txt": "x\n", "old.txt": "b\n", "sub": "/", "sub/new.txt": "1\n"}
    call = next(
        event["call_id"]
        for event in work.session()
        if event.get("type") == "files_changed" and event["name"] == "shell"
    )
    work.rewind("--yes", "--to-call", call)
    assert work.files() == {"old.txt": "a\n", "sub": "/", "sub/new.txt": "1\n"}


def test_back_to_before_an_earlier_run(work: Work) -> None:
    work.go(_turns(_call("shell", command="echo one > one.txt")))
    work.go(_turns(_call("shell", command="echo two > two.txt")), "-c")
    work.rewind("--yes")
    assert work.files() == {"old.txt": "a\n", "one.txt": "one\n"}
    for name in ("r1", "1", "s-deterministic-r1"):
        assert [item["path"] for item in work.rewind("--dry-run", name)["items"] if item["chosen"]] == [
            str(work.work / "one.txt")
        ]
    ended = work.run("rewind", "--yes", "7")
    assert (ended.code, "its last runs are r1, r2" in ended.err) == (42, True)


def test_a_preview_changes_nothing_and_headless_it_needs_a_yes(work: Work) -> None:
    work.go(_THREE_TURNS)
    before = work.files()
    preview = work.run("rewind", "--preview")
    assert (preview.code, preview.err) == (0, "")
    assert [line.split("  (")[0] for line in preview.out.decode().splitlines()[1:]] == [
        f"  delete   {work.work}/deep",
        f"  delete   {work.work}/deep/er",
        f"  restore  {work.work}/old.txt",
        f"  delete   {work.work}/sub",
        f"  delete   {work.work}/sub/new.txt",
    ]
    refused = work.run("rewind")
    assert (refused.code, "give --yes" in refused.err) == (2, True)
    assert work.files() == before


def test_br_171_a_persons_change_stays_with_its_name_and_a_code(work: Work) -> None:
    work.go(_THREE_TURNS)
    (work.work / "old.txt").write_text("mine\n")
    report = work.rewind("--yes")
    assert report["code"] == 1
    assert [
        (item["path"], item["verdict"]) for item in report["items"] if not item["chosen"] and item["verdict"] != "same"
    ] == [(str(work.work / "old.txt"), "conflict")]
    assert work.files() == {"old.txt": "mine\n"}
    assert work.rewind("--yes", "--force")["code"] == 0
    assert work.files() == {"old.txt": "a\n"}


def test_a_session_in_use_is_not_rewound(work: Work) -> None:
    work.go(_THREE_TURNS)
    before = work.files()
    (path,) = (work.root / "home/sessions").glob("*/*.jsonl")
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        ended = work.run("rewind", "--yes")
    assert (ended.code, "is in use" in ended.err) == (42, True)
    assert work.files() == before


def test_the_model_is_told_what_is_no_longer_what_it_left(work: Work) -> None:
    work.go(_turns(_call("shell", command="echo one > one.txt")))
    work.rewind("--yes")
    told = [event["user"]["parts"][0]["text"] for event in work.session() if event.get("type") == "user_added"]
    assert told == [
        f"(The person has put these files back to an earlier state: {work.work}/one.txt."
        " Read them again before you go on.)"
    ]
    assert work.go(_turns(), "-c").code == 0


def test_br_170_what_could_not_be_kept_is_told_and_rewind_refuses_for_that_point(work: Work) -> None:
    home = work.root / "home"
    home.mkdir()
    (home / "snapshots").write_text("in the way")
    ended = work.go(_THREE_TURNS)
    assert ended.code == 0
    assert ended.err.count("what calls change cannot be taken back") == 1
    before = work.files()
    refused = work.run("rewind", "--yes")
    assert refused.code == 42
    assert "nothing was rewound" in refused.err
    assert "cannot be written (Not a directory)" in refused.err
    assert work.files() == before


def test_switched_off_is_a_refusal_and_not_an_empty_rewind(work: Work) -> None:
    work.environ["NOVACODE_SNAPSHOTS_ENABLED"] = "false"
    work.go(_THREE_TURNS)
    refused = work.run("rewind", "--yes")
    assert (refused.code, "snapshots were switched off" in refused.err) == (42, True)


def test_br_173_what_is_not_covered_is_named_when_it_is_left_out_and_at_the_rewind(work: Work) -> None:
    work.environ["NOVACODE_SNAPSHOTS_MAX_FILE_MB"] = "1"
    (work.work / "big.bin").write_bytes(b"x" * 1_500_000)
    ended = work.go(_turns(_call("shell", command="echo y >> big.bin; echo z > z.txt")))
    assert "not covered by `novacode rewind`: big.bin (larger than 1 MB)" in ended.err
    preview = work.run("rewind", "--yes")
    assert preview.code == 1
    assert "leave    " in preview.out.decode()
    assert f"Not covered: {work.work}/big.bin (larger than 1 MB)" in preview.out.decode()
    assert not (work.work / "z.txt").exists()
    assert (work.work / "big.bin").stat().st_size == 1_500_002


def test_what_a_cancelled_call_did_can_be_taken_back(work: Work) -> None:
    """Cancellation is not rollback; this is."""
    (work.root / "task.toml").write_text(_turns(_call("shell", command="echo x > made.txt; sleep 60")))
    process = work.start("run", "-m", f"script:{work.root / 'task.toml'}", "--yolo", "go")
    work.until(lambda: (work.work / "made.txt").exists())
    process.send_signal(signal.SIGINT)
    assert work.wait(process).code == 130
    assert work.files() == {"made.txt": "x\n", "old.txt": "a\n"}
    assert work.rewind("--yes")["code"] == 0
    assert work.files() == {"old.txt": "a\n"}


def test_after_a_kill_rewind_says_that_it_does_not_know(work: Work) -> None:
    (work.root / "task.toml").write_text(_turns(_call("shell", command="echo x > made.txt; sleep 60 & wait")))
    process = work.start("run", "-m", f"script:{work.root / 'task.toml'}", "--yolo", "go")
    work.until(lambda: (work.work / "made.txt").exists())
    process.kill()
    work.wait(process)
    refused = work.run("rewind", "--yes")
    assert (refused.code, "was cut off, and what it had changed by then is not known" in refused.err) == (42, True)
    assert (work.work / "made.txt").exists()


def test_reading_keeps_nothing(work: Work) -> None:
    work.go(_turns(_call("shell", command="ls; cat old.txt"), _call("read", path="old.txt")))
    assert not (work.root / "home/snapshots").exists()
    assert work.rewind("--yes")["items"] == []


def test_what_cannot_be_meant_is_refused(work: Work) -> None:
    assert "there is no session" in work.run("rewind", "--yes").err
    work.go(_turns(_call("shell", command="echo x > x")))
    assert "no call 'nope' was executed" in work.run("rewind", "--yes", "--to-call", "nope").err
    assert "there is no rewind" in work.run("rewind", "--yes", "--undo").err
    assert work.run("rewind", "--undo", "--to-call", "x").code == 2
