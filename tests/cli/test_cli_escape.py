"""Nothing from outside may act on a terminal or hide from the eye."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from novacode.cli.escape import for_encoding, in_one_line, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("touch P\r\x1b[2Kgit status", "touch P\\x0d\\x1b[2Kgit status"),
        ("ls\u200b -la ; touch\u00a0P2", "ls\\u200b -la ; touch\\xa0P2"),
        ("ls" + " " * 83 + "; touch P3", "ls [83 spaces] ; touch P3"),
        ("echo \u202e gpj.exe", "echo \\u202e gpj.exe"),
        ("a\x9b31mb\x7f", "a\\x9b31mb\\x7f"),
        ("tag \U000e0041", "tag \\U000e0041"),
        ("half \ud83d", "half \\ud83d"),
        ("a\u2028b\x85c\x00", "a\\u2028b\\x85c\\x00"),
        ("  indented\tüñí 日本 😀\n", "  indented\tüñí 日本 😀\n"),
        (" " * 40 + "deep", " " * 40 + "deep"),
    ],
)
def test_br_051_what_acts_or_hides_is_shown(text, shown):
    assert visible(text) == shown


def test_prose_keeps_its_typography_and_nothing_else():
    assert visible("10\u00a0km 👩\u200d🔬", prose=True) == "10\u00a0km 👩\u200d🔬"
    assert visible("a\u202eb\x1b]0;t\x07\u200b", prose=True) == "a\\u202eb\\x1b]0;t\\x07\\u200b"


@given(st.text(st.characters(exclude_categories=()), max_size=60), st.booleans())
def test_no_control_character_gets_through(text, prose):
    shown = visible(text, prose=prose)
    assert not {character for character in shown if ord(character) < 32} - {"\n", "\t"}
    assert not set(shown) & set(map(chr, range(0x7F, 0xA0)))
    shown.encode("utf-8")


@given(st.text(max_size=60), st.integers(0, 30))
def test_one_line_is_one_line_and_never_wider(text, width):
    line = in_one_line(text, width)
    assert len(line) <= width
    assert len(line.splitlines()) <= 1


def test_a_cut_is_said():
    assert in_one_line("abcdefghij", 8) == "abcde..."


@pytest.mark.parametrize(
    ("encoding", "shown"), [("ascii", "\\u2713 ok"), ("utf-8", "✓ ok"), ("nonsense", "\\u2713 ok")]
)
def test_an_encoding_that_cannot_say_it_gets_escapes(encoding, shown):
    assert for_encoding("✓ ok", encoding) == shown
