"""The read tool, and the window of lines it shows."""

import base64
import itertools
import os
import socket

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from novacode.errors import ToolFailed
from novacode.tools import files, read
from novacode.tools.read import ReadTool
from novacode.tools.window import LineWindow
from novacode.values.parts import Image, Text

READ = ReadTool()
BAD = "; 2 bytes or characters are not valid UTF-8, shown as \ufffd"


async def test_lines_are_numbered_and_counted(bench):
    bench.put("f", "one\n\n\tthree\n")
    assert await bench.run(READ, path="f") == "     1\tone\n     2\t\n     3\t\tthree\n[lines 1 to 3 of 3]"


async def test_a_part_says_where_to_read_on(bench):
    bench.put("f", "".join(f"{n}\n" for n in range(1, 11)))
    assert await bench.run(READ, path="f", offset=3, limit=2) == (
        "     3\t3\n     4\t4\n[lines 3 to 4 of 10; read on with offset=5]"
    )
    assert await bench.run(READ, path="f", offset=9) == "     9\t9\n    10\t10\n[lines 9 to 10 of 10]"
    with pytest.raises(ToolFailed, match="`offset` is 11, but the file has only 10 lines"):
        await bench.run(READ, path="f", offset=11)


async def test_the_result_is_bounded_and_tells_how_to_go_on(bench):
    bench.put("f", "x" * 1000 + "\n" + ("y" * 99 + "\n") * 5000)
    said = await bench.run(READ, path="f")
    assert len(said) < 62_000
    last = int(said.splitlines()[-2].split("\t")[0])
    assert said.endswith(f"[lines 1 to {last} of 5001; read on with offset={last + 1}]")


async def test_long_lines_are_cut_and_say_so(bench):
    bench.put("f", "a" * 5000 + "\nb\n")
    said = await bench.run(READ, path="f")
    assert said == f"     1\t{'a' * 2000} [... 3000 more characters in this line ...]\n     2\tb\n[lines 1 to 2 of 2]"


@pytest.mark.parametrize(
    ("data", "shown", "notes"),
    [
        (b"a\r\nb\r\n", "     1\ta\n     2\tb", "; line ends are CRLF"),
        (b"a\r\nb\n", "     1\ta\n     2\tb", "; line ends are mixed: LF and CRLF"),
        (b"a\nb", "     1\ta\n     2\tb", "; no newline at the end"),
        (b"\xef\xbb\xbfa\n\n", "     1\ta\n     2\t", "; UTF-8 with byte order mark"),
        ("\ufeffa\nä\n".encode("utf-16-le"), "     1\ta\n     2\tä", "; UTF-16-LE with byte order mark"),
        ("\ufeffa\nä\n".encode("utf-32-be"), "     1\ta\n     2\tä", "; UTF-32-BE with byte order mark"),
        (b"stra\xdfe\n\xb5\n", "     1\tstra\ufffde\n     2\t\ufffd", BAD),
        (b"x\ny\xf0\x9f", "     1\tx\n     2\ty\ufffd\ufffd", f"; no newline at the end{BAD}"),
    ],
)  # fmt: skip
async def test_what_is_unusual_about_the_bytes_is_said(bench, data, shown, notes):
    bench.put("f", data)
    assert await bench.run(READ, path="f") == f"{shown}\n[lines 1 to 2 of 2{notes}]"


async def test_a_late_nul_is_shown(bench):
    bench.put("f", b"a\n" * 5000 + b"\0\n")
    assert "1 NUL characters, shown as \u2400" in await bench.run(READ, path="f", offset=5001)


async def test_br_109_an_empty_file_says_that_it_is_empty(bench):
    bench.put("f", b"")
    assert await bench.run(READ, path="f") == "(`f` is empty: 0 bytes)"
    bench.put("bom", b"\xef\xbb\xbf")
    assert await bench.run(READ, path="bom") == "(`bom` is empty: 3 bytes)"


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("pipe", "named pipe"),
        ("to-pipe", "named pipe"),
        ("/dev/zero", "is a device"),
        ("folder", "is a folder, not a file; list it with `glob`"),
        ("socket", "is a socket"),
        ("loop", "symbolic links|does not exist"),
        ("binary", "binary file; it is not shown"),
        ("nothing/here", "does not exist; neither does the folder `nothing`"),
        ("conftset.py", r"does not exist; in the same folder there is `conftest\.py`"),
    ],
)
async def test_br_109_what_is_no_file_of_text_is_refused_at_once(bench, path, words, monkeypatch):
    monkeypatch.chdir(bench.root)
    os.mkfifo("pipe")
    os.symlink("pipe", "to-pipe")
    os.symlink("loop", "loop")
    os.mkdir("folder")
    bench.put("binary", b"\x7fELF\0\0")
    bench.put("conftest.py", "")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        with trio.fail_after(2), pytest.raises(ToolFailed, match=words):
            await bench.run(READ, path=path)


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs /proc")
async def test_br_109_files_of_proc_have_no_size_but_content(bench):
    assert "Name:" in await bench.run(READ, path="/proc/self/status")
    with pytest.raises(ToolFailed, match="binary file"):
        await bench.run(READ, path="/proc/self/environ")


async def test_images_are_shown_as_images(bench):
    data = b"\x89PNG\r\n\x1a\n" + b"\0" * 20
    bench.put("p.png", data)
    output = await bench.output(READ, path="p.png")
    assert output.content == (
        Text("p.png: image/png, 28 bytes"),
        Image("image/png", base64.b64encode(data).decode()),
    )
    bench.put("big.gif", b"GIF89a" + b"\0" * 4_000_000)
    with pytest.raises(ToolFailed, match="image of 4000006 bytes; 3750000 can be shown at most"):
        await bench.run(READ, path="big.gif")


@pytest.mark.parametrize(
    ("start", "kind"), [(b"\xff\xd8\xff\xe0", "jpeg"), (b"GIF87a", "gif"), (b"RIFF\0\0\0\0WEBPVP8 ", "webp")]
)
async def test_an_image_is_told_by_its_content(bench, start, kind):
    bench.put("anything", start + b"\0\0")
    output = await bench.output(READ, path="anything")
    assert isinstance(output.content[1], Image)
    assert output.content[1].media_type == f"image/{kind}"


async def test_what_was_read_is_noted_by_its_whole_content_under_its_real_path(bench):
    path = bench.put("f", "a\n" * 3000)
    (bench.root / "link").symlink_to("f")
    await bench.run(READ, path="link", offset=2, limit=1)
    assert bench.seen.digest(path) == files.digest_of(path.read_bytes())


async def test_a_file_too_large_to_be_edited_is_read_in_bounded_memory_and_not_noted(bench, monkeypatch):
    monkeypatch.setattr(read, "LARGEST", 10)
    path = bench.put("f", "0123456\n" * 4)
    said = await bench.run(READ, path="f")
    assert said.endswith("[lines 1 to 2 of 2 or more: the file is larger than can be read here, or edited; "
                         "no newline at the end]")  # fmt: skip
    assert bench.seen.digest(path) is None


async def test_reading_a_large_file_can_be_cancelled(bench):
    bench.put("f", b"x\n" * 4_000_000)
    with trio.CancelScope() as scope:
        scope.cancel()
        await bench.run(READ, path="f")
    assert scope.cancelled_caught
    assert bench.seen.digest(bench.root / "f") is None


@given(
    text=st.text(st.sampled_from("ab\r\n"), max_size=60),
    cuts=st.lists(st.integers(0, 60), max_size=8),
    first=st.integers(1, 5),
    most=st.integers(1, 4),
    budget=st.integers(10, 60),
)
def test_a_window_does_not_depend_on_how_the_text_was_cut(text, cuts, first, most, budget):
    def look(pieces):
        window = LineWindow(first, most, budget)
        for piece in pieces:
            window.feed(piece)
        unfinished = window.unfinished
        window.close()
        return window.shown, window.lines, window.crlf, unfinished

    places = sorted({0, len(text), *(min(cut, len(text)) for cut in cuts)})
    whole = look([text])
    assert look([text[a:b] for a, b in itertools.pairwise(places)]) == whole
    lines = text.split("\n")
    assert whole[1] == len(lines) - (lines[-1] == "")
    assert whole[2] == text.count("\r\n")
    assert whole[3] == (lines[-1] != "")
    expected = [f"{n:6}\t{line}" for n, line in enumerate(_shown(text), 1)][first - 1 : first - 1 + most]
    assert whole[0] == expected[: len(whole[0])]


def _shown(text: str) -> list[str]:
    *ended, last = text.split("\n")
    return [line.removesuffix("\r") for line in ended] + ([last] if last else [])
