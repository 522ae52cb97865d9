"""Head and tail of an output without end: bounded, linear, and never half a character."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from novacode.values.clip import Clip, clip_text

_texts = st.text(alphabet=st.sampled_from("aé€😀\n"), max_size=200)


def fed(data: bytes, limit: int, *cuts: int) -> Clip:
    clip = Clip(limit)
    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    for start, stop in itertools.pairwise(places):
        clip.feed(data[start:stop])
    return clip


@pytest.mark.parametrize("limit", [1, 0, -5])
def test_a_limit_has_room_for_both_ends(limit: int) -> None:
    with pytest.raises(ValueError, match=f"limit is {limit}; it must be 2 bytes or more"):
        Clip(limit)


def test_what_fits_is_kept_as_it_is() -> None:
    assert fed(b"0123456789", 10).text("see file") == "0123456789"
    assert fed(b"", 10).text() == ""


def test_what_does_not_fit_is_counted_and_its_place_is_told() -> None:
    clip = fed(b"0123456789", 4)
    assert (clip.total, clip.omitted) == (10, 6)
    assert clip.text() == "01\n[... 6 bytes left out ...]\n89"
    assert clip.text("all of it: out.txt") == "01\n[... 6 bytes left out; all of it: out.txt ...]\n89"


@given(_texts, st.integers(2, 60), st.lists(st.integers(0, 800), max_size=8))
def test_any_cut_gives_whole_characters_of_both_ends(text: str, limit: int, cuts: list[int]) -> None:
    data = text.encode()
    clip = fed(data, limit, *cuts)
    assert clip.text() == fed(data, limit).text()
    if not clip.omitted:
        assert clip.text() == text
        return
    shown = re.fullmatch(r"(.*)\n\[\.\.\. (\d+) bytes left out \.\.\.\]\n(.*)", clip.text(), re.DOTALL)
    assert shown is not None
    head, omitted, tail = shown.groups()
    assert text.startswith(head)
    assert text.endswith(tail)
    assert int(omitted) == len(data) - limit
    assert limit - 6 <= len(head.encode()) + len(tail.encode()) <= limit


@given(st.binary(max_size=300), st.integers(2, 60), st.lists(st.integers(0, 300), max_size=8))
def test_any_bytes_give_text_in_bounded_memory(data: bytes, limit: int, cuts: list[int]) -> None:
    clip = fed(data, limit, *cuts)
    assert (clip.total, clip.omitted) == (len(data), max(0, len(data) - limit))
    assert clip.text() == fed(data, limit).text()
    clip.text().encode()
    assert len(clip._head) + len(clip._tail) <= 2 * limit


@pytest.mark.parametrize("character", ["é", "€", "😀"])
@pytest.mark.parametrize("shift", range(4))
def test_a_border_through_a_character_takes_it_out_whole(character: str, shift: int) -> None:
    text = "a" * shift + character * 20 + "z" * shift
    assert "\ufffd" not in fed(text.encode(), 17).text()


def test_a_text_is_clipped_by_its_bytes() -> None:
    assert clip_text("é" * 5, 10) == "é" * 5
    assert clip_text("é" * 6, 8) == "éé\n[... 4 bytes left out ...]\néé"
    assert clip_text("x" * 6, 4, "see f") == "xx\n[... 2 bytes left out; see f ...]\nxx"


def test_half_a_surrogate_pair_is_no_reason_to_fail() -> None:
    assert clip_text("\ud800", 10) == "\ud800"
    clip_text("\ud800" * 50, 10).encode()


def test_many_small_pieces_are_linear() -> None:
    """Pieces of one byte cost the same however many there were: a hang guard, not a measurement."""
    clip = Clip(1000)
    for _ in range(200_000):
        clip.feed(b"x")
    assert clip.omitted == 199_000
