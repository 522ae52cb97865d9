"""JSON that no JSON text may hold, with and without the fast reader."""

import json
import sys

import pytest

from novacode.protocols import jsonio

orjson = pytest.importorskip("orjson")


@pytest.fixture(params=["orjson", "stdlib"])
def reader(request, monkeypatch):
    monkeypatch.setattr(jsonio, "_fast", orjson.loads if request.param == "orjson" else None)
    return request.param


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b'{"a":[1,2.5,true,null,"x"]}', {"a": [1, 2.5, True, None, "x"]}),
        (b'{"logprob":NaN,"b":-Infinity}', {"logprob": None, "b": None}),
        (b'"a\\ud83dz"', "a\ufffdz"),
        (b'"\\ud83d\\ude00"', "\U0001f600"),
        (b'{"\\udc00":1}', {"\ufffd": 1}),
        (b'"caf\xe9"', "caf\ufffd"),
        (b"\xff", None),
    ],
)
@pytest.mark.usefixtures("reader")
def test_both_readers_agree(data, value):
    if value is None:
        with pytest.raises(ValueError):
            jsonio.load(data)
    else:
        assert jsonio.load(data) == value


@pytest.mark.usefixtures("reader")
def test_bottomless_nesting_is_an_error_that_can_be_caught():
    depth = sys.getrecursionlimit() * 50
    with pytest.raises((ValueError, RecursionError)):
        jsonio.load(b"[" * depth)


def test_large_integers_keep_their_digits_where_they_matter():
    assert jsonio.load_exact(b'{"n":123456789012345678901234567890}') == {"n": 123456789012345678901234567890}


def test_what_is_written_is_always_json():
    value = {"a": "caf\u00e9 \ud83d", "b": [float("nan"), float("inf"), 1.5], "c": ("x",)}
    assert jsonio.dump(value) == '{"a":"caf\u00e9 \ufffd","b":[null,null,1.5],"c":["x"]}'.encode()
    assert json.loads(jsonio.dump({"k": "a\u2028b"})) == {"k": "a\u2028b"}
