"""A chat as its users have it: on a terminal of its own, with real keys, real signals and real processes."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
import trio
import trio.testing
from doubles.command_line import Place, Reply, checking
from doubles.model_server import Answer, Pause, Server, Step, serving
from doubles.os_processes import alive, unique
from doubles.replies import anthropic
from person import Person, at_terminal

from novacode.app.settings import Places, load_settings
from novacode.app.setup import SessionWish, Setup
from novacode.app.wiring import open_app
from novacode.authority.approvals import Answer as Approval
from novacode.authority.policy import Mode
from novacode.values.events import ApprovalAsked, CallSettled, RunStatus, Stamped, TextDelta
from novacode.values.results import Outcome

pytestmark = pytest.mark.timeout(120)

_CODES = {signal.SIGTERM: 143, signal.SIGHUP: 129}


def _plain(tmp_path: Path) -> Place:
    """A place whose terminal cannot move its cursor: lines are read as the terminal gives them."""
    return Place(tmp_path, {"TERM": "dumb", "LC_ALL": "C.UTF-8"})


def _editor(tmp_path: Path) -> Place:
    """A place with the line editor."""
    pytest.importorskip("prompt_toolkit")
    return Place(tmp_path, {"TERM": "xterm", "LC_ALL": "C.UTF-8", "PROMPT_TOOLKIT_NO_CPR": "1"})


_PLACES = pytest.mark.parametrize("place_of", [_plain, _editor], ids=["lines", "editor"])


@contextmanager
def _chat(place: Place, replies: Sequence[Reply], *flags: str) -> Iterator[tuple[Person, Server]]:
    with (
        checking(replies) as server,
        at_terminal(place, "chat", "--base-url", server.url, "-m", "anthropic/m", *flags) as person,
    ):
        yield person, server


def _said(server: Server) -> list[str]:
    """What the person has said, as the last request has it: the text of its user messages."""
    found = []
    for message in server.requests[-1].json["messages"]:
        if message["role"] == "user":
            content = message["content"]
            blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
            found += [block["text"] for block in blocks if block["type"] == "text"]
    return found


def _results(server: Server) -> list[str]:
    content = [block for message in server.requests[-1].json["messages"] for block in message["content"]]
    return [str(block["content"]) for block in content if isinstance(block, dict) and block["type"] == "tool_result"]


def _sleep(token: str, trap: str = "") -> Reply:
    return anthropic("", [("tu_1", "shell", {"command": f"{trap}sleep {token}; sleep {token}"})])


def _make(number: int = 1) -> Reply:
    return anthropic("", [(f"ask_{number}", "shell", {"command": f"touch made{number}"})])


@_PLACES
def test_prompts_run_on_one_session(tmp_path: Path, place_of) -> None:
    """Each is shown its answer, the second is sent with the first, and Ctrl-D at the prompt ends with 0."""
    place = place_of(tmp_path)
    with _chat(place, [anthropic("First answer."), anthropic("Second answer.")]) as (person, server):
        person.says("one")
        person.sees("First answer.")
        person.says("two")
        person.sees("Second answer.")
        person.sees("> ")
        person.types("\x04")
        person.sees("novacode chat -r s-")
        assert person.leaves() == 0
        assert _said(server) == ["one", "two"]


@_PLACES
def test_br_014_one_ctrl_c_stops_the_tool_and_the_chat_goes_on(tmp_path: Path, place_of) -> None:
    """The process is gone, and the next message is answered by the same chat."""
    token, place = unique(), place_of(tmp_path)
    with _chat(place, [_sleep(token), anthropic("Still here.")], "--yolo") as (person, server):
        person.says("sleep")
        place.until(lambda: bool(alive(f"sleep {token}")))
        person.types("\x03")
        person.sees("cancelled (SIGINT)")
        assert alive(token) == []
        time.sleep(2.1)  # so that a Ctrl-C would not be the second of two
        person.says("are you there?")
        person.sees("Still here.")
        assert _said(server) == ["sleep", "are you there?"]
        assert len(_results(server)) == 1
        person.sees("> ")
        person.types("\x04")
        assert person.leaves() == 0


@_PLACES
def test_br_014_two_ctrl_c_end_it(tmp_path: Path, place_of) -> None:
    """The run is over before the second comes, and it still is the second of two."""
    token, place = unique(), place_of(tmp_path)
    with _chat(place, [_sleep(token, "trap '' INT; ")], "--yolo") as (person, _):
        person.says("sleep")
        place.until(lambda: bool(alive(f"sleep {token}")))
        person.types("\x03")
        person.sees("cancelled (SIGINT)")
        person.sees("> ")
        person.types("\x03")
        assert (person.leaves(), alive(token)) == (130, [])


def test_the_second_ctrl_c_skips_the_grace_and_the_chat_goes_on(tmp_path: Path) -> None:
    """What ignores SIGTERM is killed at once."""
    token, place = unique(), _plain(tmp_path)
    with _chat(place, [_sleep(token, "trap '' INT TERM; "), anthropic("Still here.")], "--yolo") as (person, _):
        person.says("sleep")
        place.until(lambda: bool(alive(f"sleep {token}")))
        person.types("\x03")
        person.sees("again to kill at once")
        person.types("\x03")
        person.sees("had to be killed")
        assert alive(token) == []
        person.says("are you there?")
        person.sees("Still here.")
        person.sees("> ")
        person.types("\x04")
        assert person.leaves() == 0


@_PLACES
def test_ctrl_c_at_the_prompt_takes_back_what_was_typed(tmp_path: Path, place_of) -> None:
    """A second one within two seconds ends the chat; nothing was sent."""
    with _chat(place_of(tmp_path), []) as (person, server):
        person.sees("> ")
        person.types("delete everything")
        person.sees("everything")
        person.types("\x03")
        person.sees("Ctrl-C again")
        person.sees("> ")
        person.types("\x03")
        assert (person.leaves(), server.requests) == (130, [])


@_PLACES
@pytest.mark.parametrize("number", _CODES, ids=lambda number: number.name)
def test_a_signal_at_the_prompt_ends_the_chat(tmp_path: Path, place_of, number: signal.Signals) -> None:
    """With the code of the signal, and with the terminal as it was."""
    with _chat(place_of(tmp_path), []) as (person, _):
        person.sees("> ")
        person.types("half a tho")
        person.sees("tho")
        person.process.send_signal(number)
        assert person.leaves() == _CODES[number]


@pytest.mark.parametrize("number", _CODES, ids=lambda number: number.name)
def test_a_signal_during_a_run_ends_the_chat_when_everything_is_reaped(tmp_path: Path, number: signal.Signals) -> None:
    """A daemon in a session of its own included."""
    token, place = unique(), _plain(tmp_path)
    daemon = f"setsid sh -c 'trap \"\" TERM HUP; sleep {token}' > /dev/null 2>&1 & sleep {token}"
    with _chat(place, [anthropic("", [("tu_1", "shell", {"command": daemon})])], "--yolo") as (person, _):
        person.says("go")
        place.until(lambda: len(alive(f"sleep {token}")) >= 3)
        person.process.send_signal(number)
        assert (person.leaves(), alive(token)) == (_CODES[number], [])


def test_a_sigterm_after_a_ctrl_c_ends_the_chat(tmp_path: Path) -> None:
    """It is a second press for the run, and the first word about the chat."""
    token, place = unique(), _plain(tmp_path)
    with _chat(place, [_sleep(token, "trap '' INT TERM; ")], "--yolo") as (person, _):
        person.says("sleep")
        place.until(lambda: bool(alive(f"sleep {token}")))
        person.types("\x03")
        person.sees("again to kill at once")
        person.process.send_signal(signal.SIGTERM)
        assert (person.leaves(), alive(token)) == (143, [])


@_PLACES
@pytest.mark.parametrize("busy", [True, False], ids=["in a run", "at the prompt"])
def test_a_terminal_that_is_closed_leaves_nothing_behind(tmp_path: Path, place_of, busy: bool) -> None:
    """Closing the window is a SIGHUP, and what cannot be shown any more is no error."""
    token, place = unique(), place_of(tmp_path)
    with _chat(place, [_sleep(token)], "--yolo") as (person, _):
        person.sees("> ")
        if busy:
            person.types("sleep\r")
            place.until(lambda: bool(alive(f"sleep {token}")))
        assert (person.hangs_up(), alive(token)) == (129, [])


@_PLACES
def test_br_018_ctrl_c_at_a_question_withdraws_it(tmp_path: Path, place_of) -> None:
    """Nothing was executed, and the next prompt is taken at once."""
    place = place_of(tmp_path)
    with _chat(place, [_make(), anthropic("Hello yourself.")]) as (person, server):
        person.says("make it")
        person.sees("q stop the run: ")
        person.types("\x03")
        person.sees("the question is withdrawn")
        person.says("hello")
        person.sees("Hello yourself.")
        assert not (place.work / "made1").exists()
        [result] = _results(server)
        assert "Nothing was executed" in result


def test_br_007_a_new_prompt_at_a_question(tmp_path: Path) -> None:
    """Words that are no answer are asked about again; after q they are said once the call has its result."""
    place = _plain(tmp_path)
    with _chat(place, [_make(), anthropic("Here they are.")]) as (person, server):
        person.says("make it")
        person.sees("q stop the run: ")
        person.types("forget it, list files instead\r")
        person.sees("is not one of the answers")
        person.sees("q stop the run: ")
        person.types("q list files instead\r")
        person.sees("Here they are.")
        assert _said(server)[-1] == "list files instead"
        assert not (place.work / "made1").exists()
        assert server.requests[-1].json["messages"][2]["content"][0]["tool_use_id"] == "ask_1"


def test_br_052_the_mode_and_what_was_allowed_outlive_a_cancelled_run(tmp_path: Path) -> None:
    """Started with everything allowed and changed in the chat: it asks, and a rule given before a stop holds after."""
    token, place = unique(), _plain(tmp_path)
    replies = [_sleep(token), _make(1), _sleep(token), _make(1), anthropic("Done."), _make(2)]
    with _chat(place, replies, "--yolo") as (person, _):
        person.says("/mode default")
        person.sees("The mode is default now.")
        person.says(f"/allow shell(sleep {token})")
        person.sees("Allowed until the end of this session")
        person.says("sleep")
        place.until(lambda: bool(alive(f"sleep {token}")))
        person.types("\x03")
        person.sees("cancelled (SIGINT)")
        person.says("make it")
        person.sees("q stop the run: ")
        person.types("s\r")
        person.sees("or - to go back: ")
        person.types("\r")
        place.until(lambda: bool(alive(f"sleep {token}")))  # the next reply sleeps again
        assert (place.work / "made1").exists()
        (place.work / "made1").unlink()
        person.types("\x03")
        person.sees("cancelled (SIGINT)")
        person.says("again")
        assert "Allow" not in person.sees("Done.")
        assert (place.work / "made1").exists()
        person.says("another")
        person.sees("q stop the run: ")


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (("one\ntwo\n",), "one\ntwo"),
        (("one\n\ntwo\nthr", "ee\n"), "one\n\ntwo\nthree"),
        (("one\\\n", "two\n"), "one\ntwo"),
        (("C:\\\\\n",), "C:\\\\"),
    ],
    ids=["a paste", "a paste without its last newline", "a backslash", "two backslashes"],
)
def test_several_lines_are_one_prompt(tmp_path: Path, typed: Sequence[str], said: str) -> None:
    """Nothing is sent before it is whole."""
    with _chat(_plain(tmp_path), [anthropic("Got it.")]) as (person, server):
        person.sees("> ")
        for piece in typed:
            person.types(piece)
            time.sleep(0.3)  # longer than the pieces of a paste are apart
            assert piece is typed[-1] or server.requests == []
        person.sees("Got it.")
        assert _said(server) == [said]


@pytest.mark.parametrize(
    ("typed", "said"), [("\x1b[200~one\ntwo\n\x1b[201~", "one\ntwo"), ("one\\\rtwo", "one\ntwo")], ids=["paste", "\\"]
)
def test_several_lines_are_one_prompt_in_the_editor(tmp_path: Path, typed: str, said: str) -> None:
    """A paste is not sent before Enter."""
    with _chat(_editor(tmp_path), [anthropic("Got it.")]) as (person, server):
        person.sees("> ")
        person.types(typed)
        person.sees("two")
        assert server.requests == []
        person.types("\r")
        person.sees("Got it.")
        assert _said(server) == [said]


def test_a_line_that_the_terminal_would_cut_is_not_sent(tmp_path: Path) -> None:
    """Half a prompt is worse than none."""
    with _chat(_plain(tmp_path), [anthropic("Got it.")]) as (person, server):
        person.sees("> ")
        person.types("x" * 5000 + "\n")
        person.sees("nothing was sent")
        person.says("short")
        person.sees("Got it.")
        assert _said(server) == ["short"]


def test_commands_are_not_said_to_the_model(tmp_path: Path) -> None:
    """Unknown ones are told; a path is no command."""
    place = _plain(tmp_path)
    with _chat(place, [anthropic("A path."), anthropic("Fresh.")]) as (person, server):
        for line, shown in [
            ("/hepl", "did you mean /help?"),
            ("/mode everything", "'everything' is not a permission mode"),
            ("/allow (", "("),
            ("/permissions", "Mode: default"),
            ("/model nobody/m", "nobody"),
            ("/cost", "0 runs"),
            ("/session", "Session s-"),
        ]:
            person.says(line)
            person.sees(shown)
        assert server.requests == []
        person.says("/usr/bin is a path")
        person.sees("A path.")
        person.says("/mode plan")
        person.says("/clear")
        person.sees("mode plan")
        person.says("new")
        person.sees("Fresh.")
        assert _said(server) == ["new"]
        person.says("/quit")
        assert person.leaves() == 0


def test_another_model_goes_on_with_the_same_session(tmp_path: Path) -> None:
    """What was said and what was allowed stays."""
    place = _plain(tmp_path)
    with _chat(place, [anthropic("One."), anthropic("Two.")]) as (person, server):
        person.says("first")
        person.sees("One.")
        person.says("/allow shell(make:*)")
        person.says("/model anthropic/other")
        person.sees("anthropic/other")
        person.says("/permissions")
        person.sees("shell(make:*)")
        person.says("second")
        person.sees("Two.")
        assert (server.requests[-1].json["model"], _said(server)) == ("other", ["first", "second"])


def test_a_chat_goes_on_with_the_latest_session(tmp_path: Path) -> None:
    """`-c`, as with run; and `novacode` alone at a terminal is a chat."""
    place = _plain(tmp_path)
    with checking([anthropic("One."), anthropic("Two.")]) as server:
        place.environ |= {"ANTHROPIC_BASE_URL": server.url}
        with at_terminal(place) as person:
            person.says("first")
            person.sees("One.")
            person.sees("> ")
            person.types("\x04")
            assert person.leaves() == 0
        with at_terminal(place, "chat", "-c") as person:
            person.says("second")
            person.sees("Two.")
            assert _said(server) == ["first", "second"]


def test_answers_go_to_standard_output_where_that_is_a_pipe(tmp_path: Path) -> None:
    """And nothing else does."""
    place = _plain(tmp_path)
    with open(tmp_path / "answers", "wb") as answers, checking([anthropic("One.")]) as server:
        flags = ("chat", "--base-url", server.url, "-m", "anthropic/m")
        with at_terminal(place, *flags, stdout=answers) as person:
            person.says("first")
            person.sees("> ")
            person.types("\x04")
            assert person.leaves() == 0
    assert (tmp_path / "answers").read_bytes() == b"One.\n"


def test_without_a_terminal_there_is_help_and_a_word(tmp_path: Path) -> None:
    """Nobody could be asked, and nothing may wait for a key."""
    place = Place(tmp_path)
    bare, chat = place.run(), place.run("chat")
    assert (bare.code, bare.out, chat.code) == (2, b"", 2)
    assert "Commands:" in bare.err
    assert "a chat needs a terminal" in chat.err


def _slow_text(call: Reply) -> Reply:
    """`call` with ten pieces of text before it, a moment apart."""
    first, *rest = call
    [delta] = [frame for frame in anthropic("Working.") if b"text_delta" in frame]
    opened, *_, stopped = anthropic("Working.")[1:4]
    text = [step for _ in range(10) for step in (delta, Pause(0.02))]
    return [first, opened, *text, stopped, *(_moved(frame) for frame in rest)]


def _moved(frame: Step) -> Step:
    """A frame of block 0 as one of block 1."""
    return frame.replace(b'"index": 0', b'"index": 1') if isinstance(frame, bytes) else frame


async def _when_quiet(answer: Callable[[], object]) -> None:
    """Answer when everybody else waits: nothing but an answer moves an open question."""
    await trio.testing.wait_all_tasks_blocked(0.05)
    answer()


async def test_br_022_the_mode_changes_and_the_stream_goes_on(tmp_path: Path) -> None:
    """Switched twice while text comes and once while the call is asked about: one request, and an open question stays.

    The mode that counts is the one in force when a call is authorised; a question that is open is for a person to
    answer, whatever the mode becomes.
    """
    async with serving([Answer.sse(*_slow_text(_make())), Answer.sse(*anthropic("Done."))]) as server:
        flags = {"model": "anthropic/m", "base_url": server.url}
        settings = load_settings(Places(tmp_path / "home", tmp_path), {}, flags)
        environ, home = {"ANTHROPIC_API_KEY": "k"}, tmp_path / "home"
        setup = Setup(settings, environ, home, tmp_path, session=SessionWish(keep=False), somebody=True)
        async with open_app(setup) as app:
            permissions = app.agent.services.permissions
            refusal = Approval(allowed=False, by="the test")
            modes = iter([Mode.BYPASS, Mode.DEFAULT])
            seen: list[object] = []

            def watch(stamped: Stamped) -> None:
                match stamped.event:
                    case TextDelta():
                        permissions.set_mode(next(modes, permissions.policy.mode))
                    case ApprovalAsked() as asked:
                        permissions.set_mode(Mode.BYPASS)
                        seen.append((permissions.policy.mode, len(server.requests)))
                        answer = partial(app.agent.answer, stamped.run_id, asked.approval_id, refusal)
                        nursery.start_soon(_when_quiet, answer)
                    case CallSettled(result=result):
                        seen.append(result.outcome)
                    case _:
                        pass

            app.bus.subscribe(watch)
            async with trio.open_nursery() as nursery:
                ended = await app.agent.run("go")
    assert (ended.status, seen, len(server.requests)) == (RunStatus.COMPLETED, [("bypass", 1), Outcome.DENIED], 2)
