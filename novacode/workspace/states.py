"""What is at a path, in a form that can be compared, written down and put back."""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Sequence

import attrs

from novacode.values.parts import JSON

__all__ = ["ABSENT", "Kind", "State", "digest_of", "load_state"]


class Kind(enum.StrEnum):
    """What a path leads to. `UNKEPT` is there and its content is not ours: too large, unreadable, or no file."""

    ABSENT = "absent"
    FILE = "file"
    LINK = "link"
    FOLDER = "folder"
    UNKEPT = "unkept"


@attrs.frozen
class State:
    """What is at a path.

    `mode` are the permission bits of a file or folder. `content` is the digest of a file, the target of a link, and
    for what is unkept a mark that changes when it does.
    """

    kind: Kind
    mode: int = 0
    content: str = ""

    def dump(self) -> list[JSON]:
        """Return it as JSON."""
        return [self.kind.value, self.mode, self.content]


ABSENT = State(Kind.ABSENT)


def load_state(data: Sequence[JSON]) -> State:
    """Return the state that `State.dump` wrote. Raises `ValueError` for anything else."""
    kind, mode, content = data
    if not isinstance(mode, int) or not isinstance(content, str):
        raise ValueError(f"{data!r} is no state of a path")
    return State(Kind(kind), mode, content)


def digest_of(data: bytes) -> str:
    """Return the name under which a content is kept."""
    return hashlib.blake2b(data, digest_size=20).hexdigest()
