"""The edit tool: it changes what it was asked to, says what it did, and leaves every other byte alone."""

import os
import re
import stat

import pytest
import trio
from hypothesis import assume, given
from hypothesis import strategies as st

from novacode.errors import ToolFailed
from novacode.tools.edit import EditTool
from novacode.tools.matching import Change, plan
from novacode.tools.read import ReadTool
from novacode.tools.schema import InvalidArguments
from novacode.tools.write import WriteTool

EDIT, READ, WRITE = EditTool(), ReadTool(), WriteTool()


async def edited(bench, data: bytes, old: str, new: str, **more) -> bytes:
    """Put `data` into a file, read it, edit it; return what it holds then."""
    path = bench.put("f", data)
    await bench.run(READ, path="f")
    await bench.run(EDIT, path="f", old=old, new=new, **more)
    return path.read_bytes()


async def refused(bench, data: bytes, old: str, new: str, **more) -> str:
    """Return the words of a refusal, after making sure that the file is as it was."""
    path = bench.put("f", data)
    await bench.run(READ, path="f")
    with pytest.raises(ToolFailed) as caught:
        await bench.run(EDIT, path="f", old=old, new=new, **more)
    assert path.read_bytes() == data
    assert os.listdir(bench.root) == ["f"]
    return str(caught.value)


# --- bytes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "old", "new", "expected"),
    [
        (b"a\r\nb\r\nc\r\n", "b\nc", "B\nC", b"a\r\nB\r\nC\r\n"),
        (b"a\r\nb\r\nc\r\n", "b\r\nc", "B\r\nC", b"a\r\nB\r\nC\r\n"),
        (b"a\nb\nc\n", "b\r\nc", "B\r\nC", b"a\nB\nC\n"),
        (b"a\r\nb\r\n", "b", "b\nc\nd", b"a\r\nb\r\nc\r\nd\r\n"),
        (b"a\r\nb\n", "b", "b\nc", b"a\r\nb\nc\n"),
        (b"a\r\nb", "b", "b\nc", b"a\r\nb\r\nc"),
        (b"a\r\nb\nc\r\n", "a\nb\nc", "A\nB\nC", b"A\r\nB\nC\r\n"),
        (b"a\r\nb\r\n", "\nb", "\nB", b"a\r\nB\r\n"),
        (b"a\r\nb\r\nc\r\n", "b\n", "", b"a\r\nc\r\n"),
    ],
)
async def test_br_101_line_ends_stay_what_they_are(bench, data, old, new, expected):
    assert await edited(bench, data, old, new) == expected


async def test_br_102_mixed_line_ends_and_bare_returns_are_data(bench):
    data = b"one\r\ntwo\nthree\rthree-b\n\x0cfour\n"
    assert await edited(bench, data, "two", "TWO") == b"one\r\nTWO\nthree\rthree-b\n\x0cfour\n"


async def test_br_102_the_diff_is_made_from_the_real_lines(bench):
    bench.put("f", b"one\r\ntwo\nthree\rthree-b\n\x0cfour")
    await bench.run(READ, path="f")
    output = await bench.output(EDIT, path="f", old="two", new="TWO")
    assert output.diff == (
        "--- f\n+++ f\n@@ -1,4 +1,4 @@\n one\r\n-two\n+TWO\n three\rthree-b\n \x0cfour\n\\ No newline at end of file\n"
    )


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"\xef\xbb\xbfa = 1\n", b"\xef\xbb\xbfa = 2\n"),
        ("\ufeffa = 1\nä\n".encode("utf-16-le"), "\ufeffa = 2\nä\n".encode("utf-16-le")),
        ("\ufeffa = 1\r\nä\r\n".encode("utf-16-be"), "\ufeffa = 2\r\nä\r\n".encode("utf-16-be")),
        ("\ufeffa = 1\n".encode("utf-32-le"), "\ufeffa = 2\n".encode("utf-32-le")),
    ],
)
async def test_br_103_a_byte_order_mark_is_kept_and_its_encoding_used(bench, data, expected):
    assert await edited(bench, data, "a = 1", "a = 2") == expected


async def test_br_103_a_file_that_is_not_what_its_mark_says_is_refused(bench):
    said = await refused(bench, b"\xff\xfea\x00 \x00b\x00c", "a", "x")
    assert "marked as UTF-16-LE but is not valid as such; it is left unchanged" in said


async def test_br_104_bytes_of_another_encoding_survive(bench):
    data = b"port = 80\n# stra\xdfe \xb5\n"
    assert await edited(bench, data, "port = 80", "port = 81") == b"port = 81\n# stra\xdfe \xb5\n"


async def test_br_104_the_mark_for_bad_bytes_is_explained_when_it_is_sent_back(bench):
    assert "which stands for bytes that are not text" in await refused(bench, b"stra\xdfe\n", "stra\ufffde", "x")


@pytest.mark.parametrize(("old", "new"), [("a", "x\udcdf"), ("\udcdf", "a"), ("a", "\ud800")])
async def test_half_a_surrogate_pair_never_becomes_a_raw_byte(bench, old, new):
    assert "half of a surrogate pair" in await refused(bench, b"a \xdf\n", old, new)


async def test_a_missing_final_newline_stays_missing(bench):
    assert await edited(bench, b"a\nb", "a", "A") == b"A\nb"


# --- matching -----------------------------------------------------------------------------------------------------


async def test_br_105_several_matches_are_refused_with_their_number_and_lines(bench):
    data = b"mail:\n  retries: 3\nqueue:\n  retries: 3\n"
    said = await refused(bench, data, "retries: 3", "retries: 5")
    assert said == (
        "`old` was found 2 times, at lines 2, 4. Give more of the text around the place you mean, or set replace_all "
        "to change every one."
    )


async def test_br_105_replace_all_changes_and_counts_every_one(bench):
    path = bench.put("f", b"mail:\n  retries: 3\nqueue:\n  retries: 3\n")
    await bench.run(READ, path="f")
    said = await bench.run(EDIT, path="f", old="retries: 3", new="retries: 5", replace_all=True)
    assert said == "Edited `f` in 2 places, at lines 2, 4."
    assert path.read_bytes() == b"mail:\n  retries: 5\nqueue:\n  retries: 5\n"


async def test_br_105_overlapping_matches_are_several_but_are_replaced_without_overlap(bench):
    assert "found 2 times" in await refused(bench, b"aaa", "aa", "b")
    assert await edited(bench, b"aaa", "aa", "b", replace_all=True) == b"ba"


async def test_br_106_an_empty_search_text_is_refused(bench):
    assert await refused(bench, b"abc", "", "X") == (
        "`old` is empty. Give the text to replace, or use `write` to make a new file."
    )


async def test_br_106_a_list_of_edits_is_refused_as_a_whole(bench):
    """One call is one edit, so none of several can be applied and another not."""
    path = bench.put("f", "a\n")
    await bench.run(READ, path="f")
    edits = [{"old": "a", "new": "A"}, {"old": "missing", "new": "M"}]
    with pytest.raises(InvalidArguments) as caught:
        await bench.run(EDIT, path="f", edits=edits)
    assert path.read_text() == "a\n"
    told = str(caught.value)
    assert all(field in told for field in ("edits", "old", "new"))


@pytest.mark.parametrize(("old", "new"), [("a", "a"), ("a\n", "a\r\n")])
async def test_br_106_nothing_to_change_is_said_as_such(bench, old, new):
    assert "there is nothing to change" in await refused(bench, b"a\nb\n", old, new)


async def test_white_space_at_line_ends_may_differ_and_that_is_said(bench):
    path = bench.put("f", b"def f():  \n    return 1\t\n\nx\n")
    await bench.run(READ, path="f")
    said = await bench.run(EDIT, path="f", old="def f():\n    return 1\n", new="def f():\n    return 2\n")
    assert said == (
        "Edited `f` at line 1. `old` was not there exactly; it was matched ignoring white space at the ends of lines."
    )
    assert path.read_bytes() == b"def f():\n    return 2\n\nx\n"


@pytest.mark.parametrize(
    ("data", "old", "new", "expected"),
    [
        (b"class A:\n    def f(self):\n        return 1\n", "def f(self):\n    return 1",
         "def f(self):\n    x = 1\n\n    return x",
         b"class A:\n    def f(self):\n        x = 1\n\n        return x\n"),
        (b"if x:\n  a\n  b\n", "      a\n      b\n", "      a\n        c\n", b"if x:\n  a\n    c\n"),
        (b"if x:\r\n\ta\r\n\tb\r\n", "a\nb", "a\nc", b"if x:\r\n\ta\r\n\tc\r\n"),
    ],
)  # fmt: skip
async def test_another_indentation_is_found_and_kept(bench, data, old, new, expected):
    assert await edited(bench, data, old, new) == expected


async def test_an_inexact_match_must_be_the_only_one(bench):
    said = await refused(bench, b"  a\n  b\nx\n    a\n    b\n", "a\nb", "c")
    assert "fits 2 places, lines 1, 4" in said


async def test_an_inexact_match_is_never_repeated_by_replace_all(bench):
    said = await refused(bench, b"  a\n  b\nx\n    a\n    b\n", "a\nb", "c", replace_all=True)
    assert "Give it exactly as it is in the file." in said


async def test_text_that_differs_in_inner_white_space_is_shown_not_changed(bench):
    said = await refused(bench, b"x\nfoo(a,  b)\ny\n", "foo(a, b)", "bar")
    assert said == "`old` was not found. It differs only in white space from line 2:\n     2\tfoo(a,  b)"


async def test_the_nearest_place_is_shown(bench):
    data = "\n".join(f"line {n}" for n in range(50)) + "\ndef compute(total, rate):\n    return total * rate\n"
    said = await refused(bench, data.encode(), "def compute(total, rates):\n    return total * rate", "x")
    assert said == (
        "`old` was not found. The nearest place is lines 51 to 52:\n"
        "    51\tdef compute(total, rate):\n    52\t    return total * rate"
    )


async def test_nothing_alike_is_said(bench):
    assert "Nothing in the file is much like it" in await refused(bench, b"abc\n", "quite different words", "x")


async def test_line_numbers_that_were_copied_along_are_recognised(bench):
    said = await refused(bench, b"one\ntwo\n", "     1\tone\n     2\ttwo", "x")
    assert "line numbers, which `read` adds" in said


def test_very_many_matches_are_not_all_counted():
    with pytest.raises(ToolFailed, match=r"found 1000 or more times, at lines? 1, 1"):
        plan("a" * 2_000_000, "aa", "b", everywhere=False)


def test_a_plan_is_a_value():
    assert plan("a\nb\n", "b", "c", everywhere=False) == Change("a\nc\n", (2,), "")


texts = st.text(st.sampled_from("ab \t\n\r\x0cé\ufeff\U0001f600"), max_size=30)


@given(before=texts, old=texts.filter(bool), new=texts, after=texts, tail=st.binary(max_size=4))
def test_only_the_matched_bytes_change(before, old, new, after, tail):
    """What lies around the one place comes out bit for bit, bad bytes included; there is `new`, line ends aside."""
    assume(not (before.endswith("\r") and old.startswith("\n")))  # then the match begins one character earlier
    data = (before + old + after).encode() + tail
    try:
        change = plan(data.decode("utf-8", "surrogateescape"), old, new, everywhere=False)
    except ToolFailed:
        return
    assert change.how == ""
    result = change.text.encode("utf-8", "surrogateescape")
    head, end = before.encode(), after.encode() + tail
    assert result.startswith(head)
    assert result.endswith(end)
    there = result[len(head) : len(result) - len(end)].decode()
    wanted = "\r?\n".join(map(re.escape, new.replace("\r\n", "\n").split("\n")))
    assert re.fullmatch(wanted, there)


@given(data=st.binary(max_size=60), new=st.text(st.sampled_from("xyz"), min_size=1, max_size=5))
def test_any_bytes_around_an_ascii_word_survive(data, new):
    text = (data + b"\nNEEDLE\n" + data).decode("utf-8", "surrogateescape")
    change = plan(text, "NEEDLE", new, everywhere=False)
    assert change.text.encode("utf-8", "surrogateescape") == data + b"\n" + new.encode() + b"\n" + data


# --- files ----------------------------------------------------------------------------------------------------------


async def test_br_108_a_link_stays_a_link_and_modes_stay(bench):
    real = bench.put("real.sh", "a\n")
    real.chmod(0o755)
    (bench.root / "link.sh").symlink_to("real.sh")
    await bench.run(READ, path="real.sh")
    await bench.run(EDIT, path="link.sh", old="a", new="b")
    assert (bench.root / "link.sh").is_symlink()
    assert real.read_text() == "b\n"
    assert stat.S_IMODE(real.stat().st_mode) == 0o755
    real.chmod(0o600)
    await bench.run(EDIT, path="real.sh", old="b", new="c")
    assert stat.S_IMODE(real.stat().st_mode) == 0o600
    assert sorted(os.listdir(bench.root)) == ["link.sh", "real.sh"]


def test_br_107_two_ways_to_one_file_claim_the_same(bench):
    bench.put("n.txt", "x")
    (bench.root / "link-to-n.txt").symlink_to("n.txt")
    ways = ["n.txt", "./n.txt", "link-to-n.txt", str(bench.root / "x" / ".." / "n.txt")]
    assert len({EDIT.claims({"path": way}, bench.workspace) for way in ways}) == 1


def test_br_048_a_link_that_leads_outside_is_judged_by_where_it_leads(bench, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (bench.root / "out").symlink_to(outside)
    for way in ("out/new.txt", "out/../outside/new.txt", "../outside/new.txt"):
        effects = WRITE.effects({"path": way, "content": "x"}, bench.workspace)
        assert effects.writes == (outside / "new.txt",)
        assert not bench.workspace.contains(effects.writes[0])
        assert str(outside) in effects.summary
    assert list(outside.iterdir()) == []


async def test_a_file_has_to_be_read_first(bench):
    bench.put("f", "a")
    with pytest.raises(ToolFailed, match=r"`f` has not been read yet\. Read it first"):
        await bench.run(EDIT, path="f", old="a", new="b")


async def test_br_110_a_file_that_was_changed_by_somebody_else_is_refused_and_a_touch_is_not_a_change(bench):
    path = bench.put("f", "a\n")
    await bench.run(READ, path="f")
    os.utime(path, (1, 1))
    await bench.run(EDIT, path="f", old="a", new="b")
    path.write_text("b\nsomebody else's\n")
    for attempt in (bench.run(EDIT, path="f", old="b", new="c"), bench.run(WRITE, path="f", content="c")):
        with pytest.raises(ToolFailed, match=r"has changed since it was read\. Read it again"):
            await attempt
    assert path.read_text() == "b\nsomebody else's\n"
    path.unlink()
    with pytest.raises(ToolFailed, match="`f` does not exist"):
        await bench.run(EDIT, path="f", old="b", new="c")


async def test_an_edit_after_an_edit_needs_no_reading_in_between(bench):
    path = bench.put("f", "a\n")
    await bench.run(READ, path="f")
    await bench.run(EDIT, path="f", old="a", new="b")
    await bench.run(EDIT, path="f", old="b", new="c")
    assert path.read_text() == "c\n"


async def test_a_change_that_comes_while_the_new_content_is_written_is_not_lost(bench):
    """The last look is right before the change, after the last checkpoint."""
    path = bench.put("f", "a" + "\n" * 3_000_000)
    await bench.run(READ, path="f")
    written = trio.Event()

    async def somebody_else():
        for _ in range(4):  # reading takes three chunks
            await trio.lowlevel.checkpoint()
        path.write_text("newer")
        written.set()

    with pytest.RaisesGroup(pytest.RaisesExc(ToolFailed, match="by somebody else just now|changed since")):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(somebody_else)
            await bench.run(EDIT, path="f", old="a", new="b")
    assert written.is_set()
    assert path.read_text() == "newer"


async def test_a_write_protected_file_is_not_replaced(bench, monkeypatch):
    """The system would allow it, since the folder is writable. Root may write everywhere, hence the patch."""
    path = bench.put("f", "a")
    await bench.run(READ, path="f")
    monkeypatch.setattr(os, "access", lambda _path, mode: mode != os.W_OK)
    with pytest.raises(ToolFailed, match="write-protected"):
        await bench.run(EDIT, path="f", old="a", new="b")
    assert path.read_text() == "a"


def test_the_details_for_a_person_are_the_change_itself(bench):
    bench.put("src/a.py", "x = 1\ny\n")
    effects = EDIT.effects({"path": "src/a.py", "old": "x = 1", "new": "x = \x1b[2K2"}, bench.workspace)
    assert effects.summary == "edit src/a.py"
    assert effects.details == "--- src/a.py\n+++ src/a.py\n@@ -1,2 +1,2 @@\n-x = 1\n+x = \x1b[2K2\n y\n"
    doomed = EDIT.effects({"path": "src/a.py", "old": "z", "new": "x"}, bench.workspace)
    assert doomed.details.startswith("This edit would fail: `old` was not found.")
