"""When two requests are the same: what differs from machine to machine is made equal, then the values are compared."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping

import attrs

from novacode.protocols.base import WireRequest
from novacode.protocols.jsonio import load_exact
from novacode.values.parts import JSON

__all__ = ["Difference", "Names", "body_of", "first_difference"]

_EXCERPT = 60  # characters shown before and after the place where two texts begin to differ
_LONGEST = 160  # characters of a value that are shown
_ABSENT = object()

# A folder's name is one only as a whole: `/w` is not in `/www` nor in `/new/w`. A line end written as an escape, as in
# JSON inside a text, is no letter before it.
_BEFORE, _AFTER = r"(?:(?<![\w.-])|(?<=\\[nrt]))", r"(?![\w-]|\.\w)"


@attrs.frozen
class Names:
    """What is written in another way on another machine, and the word that stands for it on a tape.

    `hide` takes out what must not be written at all.
    """

    hide: Callable[[str], str] = lambda text: text
    _folders: tuple[tuple[re.Pattern[str], str], ...] = ()
    _others: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(
        cls,
        folders: Iterable[tuple[str, str]] = (),
        others: Iterable[tuple[str, str]] = (),
        hide: Callable[[str], str] = lambda text: text,
    ) -> Names:
        """Return names for `(path, word)` pairs in `folders` and `(text, word)` pairs in `others`.

        The longest path is replaced first: one folder may be in another. The root of the file system is no folder
        that could be told from others.
        """
        kept = sorted({pair for pair in folders if pair[0].strip("/")}, key=lambda pair: (-len(pair[0]), pair))
        patterns = tuple((re.compile(_BEFORE + re.escape(path) + _AFTER), word) for path, word in kept)
        return cls(hide, patterns, tuple(others))

    def text(self, text: str) -> str:
        """Return `text` as it is on a tape."""
        text = self.hide(text)
        for pattern, word in self._folders:
            text = pattern.sub(word, text)
        for other, word in self._others:
            text = text.replace(other, word)
        return text

    def value(self, value: JSON) -> JSON:
        """Return `value` with every text in it, keys included, as it is on a tape."""
        match value:
            case str():
                return self.text(value)
            case Mapping():
                return {self.text(str(key)): self.value(item) for key, item in value.items()}
            case list() | tuple():
                return [self.value(item) for item in value]
            case _:
                return value


@attrs.frozen
class Difference:
    """Where two values begin to differ: a JSON path, and what is there in each, shortened for people."""

    path: str
    expected: str
    found: str

    def __str__(self) -> str:
        return f"at {self.path}: expected {self.expected}, found {self.found}"


def body_of(request: WireRequest) -> JSON:
    """Return the body of `request` as the value it is; as text where it is no JSON."""
    try:
        return load_exact(request.body)
    except (ValueError, RecursionError):
        return request.body.decode("utf-8", "replace")


def first_difference(expected: JSON, found: JSON, path: str = "$") -> Difference | None:
    """Return where `found` begins to differ from `expected`, in the order of `expected`; `None` where it does not.

    The order of an object's fields means nothing. Numbers are equal where their values are; `true` is no number.
    """
    if isinstance(expected, Mapping) and isinstance(found, Mapping):
        names = (*expected, *(name for name in found if name not in expected))
        pairs = [(_field(path, name), expected.get(name, _ABSENT), found.get(name, _ABSENT)) for name in names]
    elif isinstance(expected, list) and isinstance(found, list):
        longest = max(len(expected), len(found))
        pairs = [(f"{path}[{at}]", _item(expected, at), _item(found, at)) for at in range(longest)]
    elif isinstance(expected, bool) is isinstance(found, bool) and expected == found:
        return None
    else:
        return Difference(path, *_shown(expected, found))
    return next((there for at, one, other in pairs if (there := first_difference(one, other, at))), None)


def _item(values: list[JSON], at: int) -> JSON:
    return values[at] if at < len(values) else _ABSENT


def _field(path: str, name: str) -> str:
    return f"{path}.{name}" if name.isidentifier() else f"{path}[{json.dumps(name, ensure_ascii=False)}]"


def _shown(expected: JSON, found: JSON) -> tuple[str, str]:
    if isinstance(expected, str) and isinstance(found, str):
        same = next((at for at, pair in enumerate(zip(expected, found, strict=False)) if pair[0] != pair[1]), None)
        at = min(len(expected), len(found)) if same is None else same
        return _excerpt(expected, at), _excerpt(found, at)
    return _one(expected), _one(found)


def _excerpt(text: str, at: int) -> str:
    start, end = max(0, at - _EXCERPT), at + _EXCERPT
    before, after = "…" if start else "", "…" if end < len(text) else ""
    return before + json.dumps(text[start:end], ensure_ascii=False) + after


def _one(value: JSON) -> str:
    if value is _ABSENT:
        return "nothing"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
