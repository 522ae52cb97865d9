"""Which fragment belongs to which call: the part of Chat Completions its imitators read in the most ways."""

from __future__ import annotations

from collections.abc import Collection

from novacode.protocols.assemble import Assembler, Draft, read_arguments, string
from novacode.protocols.jsonio import dump_text
from novacode.values.parts import JSON

__all__ = ["ChatCalls"]


class ChatCalls:
    """The calls of one response.

    A fragment belongs to the call of its index, or without one to the last call. It begins a new call where none is
    there yet, or where it brings a name together with another id than the call there has.
    """

    def __init__(self, parts: Assembler, known_tools: Collection[str]) -> None:
        self._parts = parts
        self._known = known_tools
        self._at: dict[int, Draft] = {}
        self._all: list[Draft] = []
        self._current: Draft | None = None

    def take(self, fragment: dict[str, JSON]) -> None:
        """Take one entry of `tool_calls`."""
        function = fragment.get("function") or {}
        wire_id, name = _said(fragment.get("id")), _said(function.get("name"))
        arguments = function.get("arguments")
        call = self._find(fragment.get("index"), wire_id, name, arguments)
        if call is not self._current:
            self.leave()
            self._current = call
        if wire_id and not call.wire_id:
            call.wire_id = wire_id
        if name and call.id is None:
            self._name(call, name)
        self._write(call, arguments)

    def leave(self) -> None:
        """Something else begins: the call under way is complete if its text says so."""
        call, self._current = self._current, None
        if call is not None and call.text.rstrip().endswith("}") and not _is_lone_braces(call.text):
            self._parts.end_call(call)

    def end(self, *, limit: bool) -> None:
        """The response is whole: end every call. `limit` tells that its end was the output limit.

        A call without any argument text takes `{}`, except the last one where the limit may have cut it.
        """
        last = self._all[-1] if self._all else None
        for call in self._all:
            if not (limit and call is last and not call.text):
                self._parts.end_call(call)
        self._current = None

    def _find(self, index: JSON, wire_id: str, name: str, arguments: JSON) -> Draft:
        if isinstance(index, int):
            call = self._at.get(index)
            if call is not None and name and not wire_id and arguments and self._is_whole(call, arguments):
                call = None
        else:
            call = next((made for made in self._all if wire_id and made.wire_id == wire_id), None)
            if call is None and not wire_id and self._all:
                call = self._all[-1]
                if name and arguments not in (None, "") and self._is_whole(call, arguments):
                    call = None
        if call is None or (name and wire_id and call.wire_id and wire_id != call.wire_id):
            call = self._parts.draft()
            self._all.append(call)
            if isinstance(index, int):
                self._at[index] = call
        return call

    def _is_whole(self, call: Draft, arguments: JSON) -> bool:
        """Whether a fragment with a name and arguments, but no id, begins another call than `call`."""
        if isinstance(arguments, dict) or call.done:
            return True
        return bool(call.text) and not isinstance(read_arguments(call.text), str)

    def _name(self, call: Draft, name: str) -> None:
        """Take a name, a repeat of it, or its next piece. It is settled once it is a known tool or arguments come."""
        before = call.name
        if before in self._known or name == before:
            return
        grows = name.startswith(before) and before + name not in self._known
        call.name = name if grows else before + name
        if call.name in self._known:
            self._parts.announce(call)

    def _write(self, call: Draft, arguments: JSON) -> None:
        if arguments is None:
            return
        if not isinstance(arguments, str):
            arguments = dump_text(arguments)
        if arguments and len(call.pieces) < 4 and not call.done and _is_lone_braces(call.text):
            if arguments.isspace():
                return
            call.pieces.clear()
        self._parts.write(call, arguments)


def _said(value: JSON) -> str:
    """Return an id or name, without what servers send to say nothing."""
    text = string(value)
    return "" if text in {"null", "None"} else text


def _is_lone_braces(text: str) -> bool:
    return len(text) < 16 and "".join(text.split()) == "{}"
