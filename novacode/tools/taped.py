"""Tools whose outcomes go onto a tape, and tools that do nothing but say what is on one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import trio

from novacode.errors import ToolFailed
from novacode.models.tape import Recorder
from novacode.models.tape_file import TapeLine, bytes_of, packed
from novacode.models.tape_match import first_difference
from novacode.models.tape_play import LONG, TapePlayer
from novacode.tools.base import Claims, Effects, Permit, Tool, ToolOutput, ToolSpec
from novacode.tools.context import ToolContext
from novacode.tools.filetool import summary
from novacode.values.parts import JSON, Image, Text
from novacode.values.results import ResultPart
from novacode.workspace.paths import Workspace

__all__ = ["RecordedTool", "TapedTool"]

_SHOWN = 1 << 20
"""Bytes of live output that are kept of one call. No result holds as much of it."""


class _Declared:
    """Declared as another tool is."""

    def __init__(self, real: Tool[Any]) -> None:
        self._real = real

    @property
    def spec(self) -> ToolSpec[Any]:
        """As the real tool's."""
        return self._real.spec

    def claims(self, arguments: Mapping[str, JSON], workspace: Workspace) -> Claims:
        """As the real tool's."""
        return self._real.claims(arguments, workspace)

    def effects(self, arguments: Mapping[str, JSON], workspace: Workspace) -> Effects:
        """As the real tool's."""
        return self._real.effects(arguments, workspace)

    def limit(self, args: Any) -> float | None:
        """As the real tool's."""
        return self._real.limit(args)


class RecordedTool(_Declared):
    """Does what the real tool does, and records what came of it."""

    def __init__(self, real: Tool[Any], recorder: Recorder) -> None:
        super().__init__(real)
        self._recorder = recorder

    async def run(self, permit: Permit[Any], ctx: ToolContext) -> ToolOutput:
        """Run the real tool. What came of it is on the tape before anybody else sees it, with no await between."""
        began, shown = trio.current_time(), bytearray()

        def output(data: bytes) -> None:
            shown.extend(data[: _SHOWN - len(shown)])
            ctx.output(data)

        def record(how: str, **more: JSON) -> None:
            call = permit.call
            told: dict[str, JSON] = {"call": call.id, "name": call.name, "arguments": dict(call.arguments)}
            told |= {"took": round(trio.current_time() - began, 6), "how": how, **more}
            self._recorder.note("tool", told | ({"shown": packed(bytes(shown))} if shown else {}))

        try:
            made = await self._real.run(permit, attrs.evolve(ctx, output=output))
        except ToolFailed as failed:
            record("cancelled" if _cut_off(failed) else "failed", words=str(failed))
            raise
        except Exception as error:
            record("cancelled" if _cut_off(error) else "raised", error=type(error).__name__, words=str(error))
            raise
        except BaseException:
            record("cancelled")
            raise
        record("done", **_output_data(made))
        return made


class TapedTool(_Declared):
    """Runs nothing and touches nothing: what comes of a call is what came of it when it was recorded."""

    def __init__(self, real: Tool[Any], player: TapePlayer) -> None:
        super().__init__(real)
        self._player = player

    def effects(self, arguments: Mapping[str, JSON], workspace: Workspace) -> Effects:
        """As the real tool's, but for the preview of a change, which would read a file of this machine."""
        claims = self.claims(arguments, workspace)
        if claims.writes and "path" in arguments:
            return Effects(summary(self.spec.name, arguments, workspace), writes=tuple(sorted(claims.writes)))
        return super().effects(arguments, workspace)

    async def run(self, permit: Permit[Any], ctx: ToolContext) -> ToolOutput:
        """Take the time it took, and say what it said. A call that was cut off then waits to be cut off now."""
        call, player = permit.call, self._player
        line = player.take("tool", {"call": call.id})
        if line is None:
            await player.miss(
                f"the tape {player.tape.source} has no outcome of the call {call.name} {call.id}; with "
                "`--replay-tools real` only the model is replayed"
            )
        asked = {"name": call.name, "arguments": player.names.value(dict(call.arguments))}
        taped = {"name": line.data["name"], "arguments": line.data["arguments"]}
        if (there := first_difference(taped, asked)) is not None:
            await player.miss(
                f"{player.tape.source}, line {line.number}: another call was recorded as {call.id} {there}"
            )
        if isinstance(shown := line.data.get("shown"), dict):
            ctx.output(bytes_of(player.here(shown)))
        if line.data["how"] == "cancelled":
            player.done(line.number)
            await trio.sleep(LONG)
            await player.miss(
                f"{player.tape.source}, line {line.number}: {call.name} {call.id} was cut off when it was recorded, "
                "and nothing cuts it off now"
            )
        await trio.sleep(line.data["took"])
        player.done(line.number)
        return _outcome(line, player)


def _cut_off(error: BaseException) -> bool:
    """Whether `error` took the place of a cancellation that was under way."""
    return isinstance(error.__context__, trio.Cancelled)


def _output_data(made: ToolOutput) -> dict[str, JSON]:
    data: dict[str, JSON] = {"content": [_part_data(part) for part in made.content]}
    if made.exit_code is not None:
        data["exit_code"] = made.exit_code
    return data | {name: value for name, value in (("note", made.note), ("diff", made.diff)) if value}


def _part_data(part: ResultPart) -> dict[str, JSON]:
    if isinstance(part, Image):
        return {"media_type": part.media_type, "data": part.data}
    return {"text": part.text}


def _outcome(line: TapeLine, player: TapePlayer) -> ToolOutput:
    """Return or raise what the tool did."""
    data = player.here(dict(line.data))
    match data["how"]:
        case "failed":
            raise ToolFailed(str(data.get("words", "")))
        case "raised":
            # It looks the same to whoever words it; its real class may be one that is not imported here.
            raise type(str(data.get("error", "Exception")), (Exception,), {})(str(data.get("words", "")))
        case _:
            return ToolOutput(
                tuple(map(_part, data.get("content", ()))),
                note=str(data.get("note", "")),
                exit_code=data.get("exit_code"),
                diff=str(data.get("diff", "")),
            )


def _part(data: Mapping[str, JSON]) -> ResultPart:
    if "media_type" in data:
        return Image(str(data["media_type"]), str(data.get("data", "")))
    return Text(str(data.get("text", "")))
