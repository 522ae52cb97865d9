"""The write tool and the replacement of files beneath it."""

import os
import signal
import stat
import subprocess
import sys
import time

import pytest
import trio

from novacode.errors import ToolFailed
from novacode.tools import files
from novacode.tools.read import ReadTool
from novacode.tools.write import WriteTool

READ, WRITE = ReadTool(), WriteTool()


@pytest.fixture(params=["unnamed", "named"])
def way(request, monkeypatch):
    """Both ways to prepare a new content: without a name (Linux), and under a hidden one."""
    if request.param == "named":
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    elif not hasattr(os, "O_TMPFILE"):
        pytest.skip("this system has no files without a name")
    return request.param


async def test_exactly_what_was_given_is_written(bench, way):
    content = "a\r\nb\nc\rd\x00é\ufeff\U0001f600"
    said = await bench.run(WRITE, path="new/deep/f", content=content)
    assert (bench.root / "new/deep/f").read_bytes() == content.encode()
    assert said == f"Created `new/deep/f`: {len(content.encode())} bytes, 2 newlines."
    assert os.listdir(bench.root / "new/deep") == ["f"]


async def test_br_101_writing_over_a_crlf_file_writes_what_was_given(bench):
    path = bench.put("f", b"a\r\nb\r\n")
    await bench.run(READ, path="f")
    output = await bench.output(WRITE, path="f", content="a\nb\n")
    assert path.read_bytes() == b"a\nb\n"
    assert output.diff == "--- f\n+++ f\n@@ -1,2 +1,2 @@\n-a\r\n-b\r\n+a\n+b\n"


async def test_an_empty_content_makes_an_empty_file(bench):
    await bench.run(WRITE, path="f", content="")
    assert (bench.root / "f").read_bytes() == b""


async def test_the_mode_of_a_new_file_follows_the_umask_and_that_of_an_old_one_stays(bench, way):
    before = os.umask(0o027)
    try:
        await bench.run(WRITE, path="f", content="a")
    finally:
        os.umask(before)
    path = bench.root / "f"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    path.chmod(0o711)
    await bench.run(WRITE, path="f", content="b")
    assert stat.S_IMODE(path.stat().st_mode) == 0o711


async def test_a_file_that_exists_must_have_been_read(bench):
    bench.put("f", "mine")
    with pytest.raises(ToolFailed, match=r"`f` exists and has not been read\. Read it first"):
        await bench.run(WRITE, path="f", content="x")
    assert (bench.root / "f").read_text() == "mine"


async def test_what_was_written_may_be_written_again(bench):
    await bench.run(WRITE, path="f", content="a")
    assert await bench.run(WRITE, path="f", content="b") == "Replaced `f`: 1 bytes, 0 newlines."


async def test_writing_through_a_link_changes_what_it_leads_to(bench):
    (bench.root / "link").symlink_to("target")
    await bench.run(WRITE, path="link", content="a")
    assert (bench.root / "link").is_symlink()
    assert (bench.root / "target").read_text() == "a"


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("folder", "is a folder"),
        ("fifo", "named pipe"),
        ("file/below", "Not a directory"),
        ("a\0b", "cannot be the name of a file"),
        ("x" * 300, "File name too long"),
        ("loop/x", "symbolic links"),
        ("\ud800", "cannot be the name of a file"),
    ],
)
async def test_what_cannot_be_written_is_said_at_once(bench, path, words):
    (bench.root / "folder").mkdir()
    os.mkfifo(bench.root / "fifo")
    bench.put("file", "x")
    (bench.root / "loop").symlink_to("loop")
    with pytest.raises(ToolFailed, match=words):
        await bench.run(WRITE, path=path, content="x")


async def test_half_a_surrogate_pair_cannot_be_written(bench):
    with pytest.raises(ToolFailed, match="surrogate pair at character 1"):
        await bench.run(WRITE, path="f", content="a\ud800")
    assert os.listdir(bench.root) == []


async def test_cancelled_in_the_middle_the_old_content_is_there_and_nothing_else(bench, way):
    """The scope is cancelled at every checkpoint of a write, one after the other, until one gets through."""
    path = bench.put("f", "old")
    await bench.run(READ, path="f")
    content = "x" * 3_500_000
    for allowed in range(100):
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_cancel_after, allowed, scope)
                await bench.run(WRITE, path="f", content=content)
                nursery.cancel_scope.cancel()
        done = path.read_text() == content
        assert done or path.read_text() == "old"
        assert bench.seen.digest(path) == files.digest_of(path.read_bytes()), "changed, but not noted"
        assert os.listdir(bench.root) == ["f"]
        if done:
            break
    assert done
    assert allowed > 1


async def _cancel_after(checkpoints: int, scope: trio.CancelScope) -> None:
    for _ in range(checkpoints):
        await trio.lowlevel.checkpoint()
    scope.cancel()


_WRITER = """
import sys, trio
from pathlib import Path
from novacode.tools.files import put
path, data = Path(sys.argv[1]), b"n" * 20_000_000
print("ready", flush=True)
while True:
    trio.run(put, path, "f", data, path.stat())
    data = bytes([data[0] ^ 1]) * len(data)
"""


@pytest.mark.slow
def test_br_108_a_kill_in_the_middle_of_a_large_write_leaves_the_old_or_the_new(tmp_path):
    path = tmp_path / "f"
    path.write_bytes(b"o" * 20_000_000)
    for attempt in range(8):
        with subprocess.Popen([sys.executable, "-c", _WRITER, str(path)], stdout=subprocess.PIPE) as writer:
            assert writer.stdout
            writer.stdout.readline()
            time.sleep(0.02 + attempt * 0.017)
            writer.send_signal(signal.SIGKILL)
        data = path.read_bytes()
        assert len(data) == 20_000_000
        assert data.count(data[:1]) == len(data), "part old, part new"
        left = [name for name in os.listdir(tmp_path) if name != "f"]
        assert len(left) <= 1, "a kill between giving the new content its name and its place may leave one"
        for name in left:
            (tmp_path / name).unlink()


def test_the_preview_of_an_overwrite_shows_the_change(bench):
    bench.put("f", "a\nb\n")
    effects = WRITE.effects({"path": "f", "content": "a\n"}, bench.workspace)
    assert (effects.summary, effects.details) == ("write f", "--- f\n+++ f\n@@ -1,2 +1 @@\n a\n-b\n")
