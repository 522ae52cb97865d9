"""The pytest plugin, as projects use it: in a pytest of their own, with plain and with trio tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

pytestmark = pytest.mark.timeout(180)  # each test starts several pytests


def outcomes(pytester: pytest.Pytester, text: str, *options: str, **env: str) -> tuple[dict[str, int], str]:
    """Run a test file in a pytest of its own; return how many passed, failed, …, and what was printed."""
    pytester.makepyfile(test_sample=text)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("CI", raising=False)
        for name, value in env.items():
            patch.setenv(name, value)
        result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-p", "no:randomly", *options)
    return result.parseoutcomes(), result.stdout.str() + result.stderr.str()


USE = """
from novacode.testing.agents import Wish
from novacode.testing.scripts import call, turn
"""


def test_an_agent_runs_in_a_workspace_of_its_own(pytester: pytest.Pytester) -> None:
    """From a plain test, with real tools; the event recorder and the checks beside it."""
    text = f"""{USE}
def test_it(nova_agent, scripted_model, assert_paired, assert_nothing_left):
    model = scripted_model(turn("Writing.", call("write", path="a.txt", content="hi")), "Done.")
    played = nova_agent.run_sync("write a.txt", model, Wish(mode="accept-edits"))
    assert (played.status, played.text, nova_agent.read("a.txt")) == ("completed", "Done.", "hi")
    assert played.outcomes == ("ok",)
    assert_paired(played)
    assert_nothing_left()

def test_a_session_goes_on(nova_agent, scripted_model):
    nova_agent.run_sync("one", scripted_model("First."))
    played = nova_agent.run_sync("two", scripted_model("Second."))
    assert [item.text for item in played.history.items if hasattr(item, "text")]
    assert len(list(played.history.exchanges)) == 2

def test_nobody_to_ask(nova_agent, scripted_model):
    model = scripted_model(turn(call("shell", command="touch x")), "Well.")
    assert nova_agent.run_sync("go", model).outcomes == ("denied",)

def test_somebody_says_yes(nova_agent, scripted_model):
    model = scripted_model(turn(call("shell", command="touch x")), "Well.")
    asked = []
    def answer(question):
        asked.append(question.call.arguments["command"])
        return True
    assert nova_agent.run_sync("go", model, Wish(answers=answer)).outcomes == ("ok",)
    assert (asked, (nova_agent.workspace / "x").exists()) == (["touch x"], True)

def test_stopped(nova_agent, scripted_model, assert_nothing_left):
    model = scripted_model(turn(call("shell", command="sleep 60")), "Never.")
    def running(stamped):
        return getattr(stamped.event, "phase", None) == "running"
    played = nova_agent.run_sync("go", model, Wish(allow=["shell(sleep:*)"], cancel_when=running))
    assert (played.status, played.outcomes) == ("cancelled", ("cancelled",))
"""
    found, printed = outcomes(pytester, text)
    assert found == {"passed": 5}, printed


def test_the_same_from_an_async_test(pytester: pytest.Pytester) -> None:
    text = f"""{USE}
import pytest
from novacode import RunEnded, open_app

@pytest.mark.trio
async def test_it(nova_agent, scripted_model):
    played = await nova_agent.run("hi", scripted_model("Hello."))
    assert played.text == "Hello."
    assert len(played.of(RunEnded)) == 1
"""
    found, printed = outcomes(pytester, text)
    assert found == {"passed": 1}, printed


def test_what_a_recorder_keeps(pytester: pytest.Pytester) -> None:
    text = """
import trio
from novacode import Bus, RunEnded, RunStatus
from novacode.values.ids import RunId

def test_it(event_recorder):
    async def main():
        bus = Bus(trio.current_time)
        stop = event_recorder.watch(bus)
        bus.emitter(RunId("r1"))(RunEnded(RunStatus.COMPLETED, "x"))
        stop()
        bus.emitter(RunId("r1"))(RunEnded(RunStatus.FAILED, "y"))
    trio.run(main)
    assert event_recorder.names == ["RunEnded"]
    assert event_recorder.of(RunEnded) == [RunEnded(RunStatus.COMPLETED, "x")]
"""
    found, printed = outcomes(pytester, text)
    assert found == {"passed": 1}, printed


TAPED = f"""{USE}
def test_it(nova_agent, scripted_model, tape):
    model = scripted_model(turn("Writing.", call("write", path="a.txt", content="hi")), "Done.")
    played = nova_agent.run_sync("write a.txt", model, Wish(mode="accept-edits"))
    assert (played.text, played.outcomes) == ("Done.", ("ok",))
    print("replayed" if not (nova_agent.workspace / "a.txt").exists() else "recorded")
"""


def test_a_tape_is_recorded_once_and_replayed_from_then_on(pytester: pytest.Pytester) -> None:
    """Where CI says that it is one, a tape that is not there is an error that says what to do."""
    found, printed = outcomes(pytester, TAPED, "-s", CI="true")
    assert found == {"failed": 1}
    assert "run the test once where it may be, with --novacode-record=once" in " ".join(printed.split())
    assert "recorded" in outcomes(pytester, TAPED, "-s")[1]
    tape = pytester.path / "tapes" / "test_sample" / "test_it.tape"
    before = tape.read_bytes()
    for env in ({}, {"CI": "true"}):
        found, printed = outcomes(pytester, TAPED, "-s", **env)
        assert (found, "replayed" in printed) == ({"passed": 1}, True)
    assert tape.read_bytes() == before
    assert "recorded" in outcomes(pytester, TAPED, "-s", "--novacode-record=all")[1]


def test_what_is_not_on_the_tape_fails_the_test(pytester: pytest.Pytester) -> None:
    outcomes(pytester, TAPED)
    found, printed = outcomes(pytester, TAPED.replace('"write a.txt", model', '"write b.txt", model'))
    assert (found, "ReplayMismatch" in printed) == ({"failed": 1}, True)


def test_what_is_left_behind_is_named(pytester: pytest.Pytester) -> None:
    text = """
import subprocess, tempfile, threading, time

def test_process(assert_nothing_left):
    test_process.made = subprocess.Popen(["sleep", "33"])

def test_thread(assert_nothing_left):
    threading.Thread(target=time.sleep, args=(3,), name="stray", daemon=True).start()
    assert_nothing_left()

def test_file(assert_nothing_left):
    tempfile.mkdtemp(prefix="novacode-left-")

def test_clean(assert_nothing_left):
    subprocess.run(["true"])
    threading.Thread(target=int).start()
    if made := getattr(test_process, "made", None):
        made.kill(), made.wait()
"""
    found, printed = outcomes(pytester, text)
    assert found == {"failed": 1, "errors": 2, "passed": 3}, printed
    for words in ("sleep 33", "thread 'stray'", "novacode-left-"):
        assert words in printed


def test_every_step_of_a_script_and_of_a_scenario_in_python(pytester: pytest.Pytester) -> None:
    """One agent of the project's own that is right, and two that are wrong in ways that only a stop brings out."""
    text = f"""{USE}
import trio

def test_script(every_step, scripted_model):
    model = scripted_model(turn(call("read", path="a")), "Done.", simulate={{"files": {{"a": "x"}}}})
    rows = every_step(model, seeds=2, hows=("run",))
    assert len(rows) > 20 and {{row.status for row in rows}} >= {{"cancelled", "completed"}}

class Agent:
    def __init__(self, right):
        self.messages, self.right = [], right

    async def run(self):
        use = {{"type": "tool_use", "id": "a", "name": "work", "input": {{}}}}
        self.messages += [{{"role": "user", "content": "go"}}, {{"role": "assistant", "content": [use]}}]
        said = "cancelled"
        try:
            await trio.sleep(1)
            said = "done"
        finally:
            if self.right or said == "done":
                result = {{"type": "tool_result", "tool_use_id": "a", "content": said}}
                self.messages.append({{"role": "user", "content": [result]}})

def scenario(right, assert_paired):
    def make():
        agent = Agent(right)
        return agent.run, lambda: assert_paired(agent.messages)
    return make

def test_right(every_step, assert_paired):
    every_step(scenario(True, assert_paired))

def test_wrong(every_step, assert_paired):
    every_step(scenario(False, assert_paired))

def test_endless(every_step):
    def make():
        async def run():
            await trio.sleep_forever()
        return run, lambda: None
    every_step(make)
"""
    found, printed = outcomes(pytester, text)
    assert found == {"passed": 2, "failed": 2}, printed
    assert "cancelled before step" in printed
    assert "calls and results are not one to one" in printed
    assert "it came to no end" in printed


def test_a_violation_in_a_script_is_told_with_its_command(pytester: pytest.Pytester) -> None:
    text = f"""{USE}
from novacode.lab.faults import planted

def test_wrong(every_step, scripted_model):
    model = scripted_model(turn(call("read", path="a")), "Done.", simulate={{"files": {{"a": "x"}}}})
    with planted("commit-outside-finally"):
        every_step(model, hows=("run",))
"""
    found, printed = outcomes(pytester, text)
    assert found == {"failed": 1}
    assert "novacode lab explore" in printed
    assert "runs broke something" in printed


def test_the_plugin_imports_nothing_before_it_is_wanted() -> None:
    """Every pytest of every project that has NovaCode in its environment loads it."""
    code = (
        "import pytest, sys; before = set(sys.modules); import novacode.testing.plugin;"
        "print(sorted(name for name in set(sys.modules) - before))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "['novacode', 'novacode.testing', 'novacode.testing.plugin']"


def test_it_can_be_turned_off(pytester: pytest.Pytester) -> None:
    found, printed = outcomes(pytester, "def test_it(nova_agent): pass", "-p", "no:novacode")
    assert found == {"errors": 1}
    assert "fixture 'nova_agent' not found" in printed


class TestPairing:
    def test_messages_of_both_forms(self, assert_paired) -> None:  # type: ignore[no-untyped-def]
        use = {"type": "tool_use", "id": "a", "name": "x", "input": {}}
        good = [{"role": "user", "content": "go"}, {"role": "assistant", "content": [use]}]
        with pytest.raises(AssertionError, match="not one to one"):
            assert_paired(good)
        assert_paired([*good, {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]}])

    def test_what_has_no_calls_is_refused(self, assert_paired) -> None:  # type: ignore[no-untyped-def]
        with pytest.raises(TypeError, match="is nothing that has calls and results"):
            assert_paired(3)

    def test_a_session_file(self, assert_paired, nova_agent, scripted_model, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
        nova_agent.run_sync("hi", scripted_model("Hello."))
        (session,) = nova_agent.home.glob("sessions/**/*.jsonl")
        assert_paired(session)
