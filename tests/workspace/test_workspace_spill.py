"""Long output: head, tail, and the whole of it where it is said to be."""

import os

import pytest

from novacode.workspace.spill import Capture


def test_short_output_touches_no_disk(tmp_path):
    capture = Capture(100, tmp_path / "spill", "call_1")
    capture.feed(b"hello ")
    capture.feed(b"world")
    assert (capture.text(), capture.total, capture.path) == ("hello world", 11, None)
    capture.close()
    assert not (tmp_path / "spill").exists()


def test_output_of_exactly_the_limit_is_short(tmp_path):
    capture = Capture(10, tmp_path / "spill", "call_1")
    capture.feed(b"0123456789")
    assert (capture.text(), capture.path) == ("0123456789", None)


def test_long_output_is_whole_in_the_file(tmp_path):
    capture = Capture(10, tmp_path / "spill", "call_1")
    for number in range(10):
        capture.feed(f"{number}".encode() * 5)
    path = tmp_path / "spill" / "call_1"
    where = f"the whole output (50 bytes) is in {path}"
    assert capture.text() == f"00000\n[... 40 bytes left out; {where} ...]\n99999"
    assert path.read_bytes() == b"".join(b"%d" % number * 5 for number in range(10))
    assert path.stat().st_mode & 0o077 == 0
    capture.close()
    capture.close()
    assert capture.text().endswith("99999")


def test_two_outputs_of_one_name_do_not_meet(tmp_path):
    first, second = (Capture(2, tmp_path, "same") for _ in range(2))
    first.feed(b"first")
    second.feed(b"second")
    first.close()
    second.close()
    assert (tmp_path / "same").read_bytes() == b"first"
    assert second.path == tmp_path / "same-2"
    assert second.path.read_bytes() == b"second"


@pytest.mark.parametrize("name", ["../../escape", "/etc/cron", "..", "", "a b\n", ".hidden"])
def test_an_odd_name_stays_in_the_folder(tmp_path, name):
    capture = Capture(2, tmp_path / "spill", name)
    capture.feed(b"12345")
    capture.close()
    assert capture.path is not None
    assert capture.path.parent == tmp_path / "spill"
    assert os.listdir(tmp_path / "spill") == [capture.path.name]


def test_a_link_laid_in_the_way_is_not_followed(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / "spill").mkdir()
    (tmp_path / "spill" / "call_1").symlink_to(victim)
    capture = Capture(2, tmp_path / "spill", "call_1")
    capture.feed(b"12345")
    capture.close()
    assert victim.read_text() == "mine"


def test_a_folder_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    capture = Capture(4, tmp_path / "file" / "spill", "call_1")
    capture.feed(b"0123456789")
    capture.feed(b"abc")
    assert "the whole output could not be kept: Not a directory" in capture.text()
    assert (capture.path, capture.total) == (None, 13)
    capture.close()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("size", [100, 1 << 20])
def test_a_full_disk_is_told(tmp_path, monkeypatch, size):
    """Whether the buffer meets the full disk or the bytes do, the capture goes on and says so."""
    real = os.open
    monkeypatch.setattr(os, "open", lambda path, flags, mode=0o777: real("/dev/full", os.O_WRONLY))
    capture = Capture(4, tmp_path, "call_1")
    capture.feed(b"x" * size)
    capture.feed(b"y" * size)
    text = capture.text()
    assert "No space left on device" in text
    assert text.startswith("xx")
    assert text.endswith("yy")
    capture.close()


def test_the_file_is_bounded(tmp_path):
    capture = Capture(4, tmp_path, "call_1", most=10)
    capture.feed(b"01234567")
    capture.feed(b"abcdefgh")
    capture.feed(b"ijk")
    assert (tmp_path / "call_1").read_bytes() == b"01234567ab"
    assert f"the first 10 of 19 bytes are in {tmp_path / 'call_1'}" in capture.text()


def test_br_116_one_giant_line_is_cut_at_a_character(tmp_path):
    capture = Capture(1001, tmp_path, "call_1")
    capture.feed("ä".encode() * 100_000)
    text = capture.text()
    assert "\ufffd" not in text
    assert f"the whole output (200000 bytes) is in {tmp_path / 'call_1'}" in text
    assert len(text.encode()) < 1200
    capture.close()
