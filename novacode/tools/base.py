"""The contract between the pipeline and a tool."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import attrs

from novacode.values.parts import JSON, Text, ToolCall
from novacode.values.results import ResultPart
from novacode.workspace.paths import Workspace

if TYPE_CHECKING:
    from novacode.tools.context import ToolContext

__all__ = [
    "EVERYTHING",
    "Claims",
    "Effects",
    "Permit",
    "SeenFiles",
    "Tool",
    "ToolOutput",
    "ToolSpec",
]

A = TypeVar("A")
A_co = TypeVar("A_co", covariant=True)

EVERYTHING = Path("/")
"""The claim on whatever there is: a folder that contains every path."""


@attrs.frozen
class Claims:
    """What a call would touch, as resolved absolute paths; a folder stands for all below it.

    Two calls conflict where one writes what the other reads or writes. The gate orders conflicting calls.
    """

    reads: frozenset[Path] = frozenset()
    writes: frozenset[Path] = frozenset()


@attrs.frozen
class Effects:
    """What permission judges about a call, worked out leniently from its raw arguments.

    `reads` and `writes` are resolved absolute paths. `command` is a shell line, judged by its own parse. `hosts` are
    network names it would talk to. `subject` is the text a rule's pattern is matched against where there is neither
    path nor command. `summary` is one line for people and `details` more of it (a diff), both without control
    characters acting on a terminal being the face's business.
    """

    summary: str
    reads: tuple[Path, ...] = ()
    writes: tuple[Path, ...] = ()
    command: str | None = None
    hosts: tuple[str, ...] = ()
    subject: str = ""
    details: str = ""


@attrs.frozen(eq=False, repr=False)
class ToolSpec(Generic[A]):
    """A tool as it is declared. `description` is written for the model; `args` is the attrs class of its parameters."""

    name: str
    description: str
    args: type[A]


@attrs.frozen
class Permit(Generic[A_co]):
    """Proof that the pipeline allowed exactly this call with exactly these arguments.

    Only `engine/pipeline.py` makes one. `granted_by` is the rule, mode or person.
    """

    call: ToolCall
    args: A_co
    granted_by: str


class SeenFiles:
    """Which files the model has read in this session, and what they held then.

    Reading before overwriting is required, and a write is refused where the file has changed since it was read.
    """

    def __init__(self) -> None:
        self._digests: dict[Path, bytes] = {}

    def note(self, path: Path, digest: bytes) -> None:
        """Remember that `path`, resolved, held content of `digest` when the model saw or wrote it."""
        self._digests[path] = digest

    def digest(self, path: Path) -> bytes | None:
        """Return what `path` held when it was last seen, or `None` where it never was."""
        return self._digests.get(path)

    def forget(self, path: Path) -> None:
        """Forget `path`."""
        self._digests.pop(path, None)


@attrs.frozen
class ToolOutput:
    """What a tool has to say. `exit_code` other than 0 or `None` makes the outcome an error.

    `note` and `diff` are for people and not sent to the model.
    """

    content: tuple[ResultPart, ...]
    note: str = ""
    exit_code: int | None = None
    diff: str = ""

    @classmethod
    def of(cls, text: str, **more: Any) -> ToolOutput:
        """Return an output of one text."""
        return cls((Text(text),), **more)


class Tool(Protocol[A]):
    """Something the model may call.

    `claims`, `effects` and `limit` are synchronous, have no effect, and never raise for odd arguments: those are
    refused later, with words. `run` raises `ToolFailed` for what went wrong as it may, and lets `Cancelled` through.
    """

    @property
    def spec(self) -> ToolSpec[A]:
        """Its name, description and parameter class."""
        ...

    def claims(self, arguments: Mapping[str, JSON], workspace: Workspace) -> Claims:
        """What a call with these raw arguments would touch."""
        ...

    def effects(self, arguments: Mapping[str, JSON], workspace: Workspace) -> Effects:
        """What permission has to judge about such a call."""
        ...

    def limit(self, args: A) -> float | None:
        """Seconds it may run before its outcome is a timeout; `None` for no limit of its own."""
        ...

    async def run(self, permit: Permit[A], ctx: ToolContext) -> ToolOutput:
        """Do it. Everything it started has stopped when it returns, raises or is cancelled."""
        ...
