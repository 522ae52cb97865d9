"""Every wire against the same suite: over HTTP, from a script, while it is recorded, and from the tape."""

from __future__ import annotations

import pytest
from doubles.check_wire import PAUSE, REQUEST, SCRIPT, check_wire
from doubles.model_server import Answer, Close, Pause, serving

from novacode.errors import ModelFailed, ReplayMismatch
from novacode.models.endpoint import Endpoint
from novacode.models.http import HttpWire
from novacode.models.script import ScriptWire, parse_script
from novacode.models.tape import Recorder, RecordingWire, TapeWire
from novacode.models.tape_file import TapeHeader, TapeWriter, read_tape
from novacode.models.tape_match import Names
from novacode.models.tape_play import TapePlayer

HEADER = TapeHeader("script", "script", "anthropic")


def script_wire():
    return ScriptWire(parse_script(SCRIPT, "check_wire"))


async def spoken():
    """What the script says, as the answers of a server."""
    wire = script_wire()
    return [await answer(wire) for _ in range(6)]


async def answer(wire):
    steps = []
    async with wire.open(REQUEST) as response:
        try:
            while data := await response.receive_some():
                steps += [Pause(PAUSE), data] if b'"ly"' in data else [data]
        except ModelFailed:
            steps.append(Close())
        return Answer(tuple(steps), response.status, tuple(response.headers.items()))


async def test_a_script(autojump_clock):
    await check_wire(script_wire())


async def test_http(mock_clock):
    mock_clock.rate = 1.0
    answers = await spoken()
    async with serving(answers) as server:
        await check_wire(HttpWire(Endpoint(server.url)))


@pytest.mark.parametrize("virtual", [True, False])
async def test_a_recording_and_its_tape(tmp_path, autojump_clock, virtual):
    """Recording changes nothing that anybody could see; the tape passes where time is virtual, and where it is not.

    Without virtual time there is no silence to be cancelled in, so the tape says that it was stopped there.
    """
    path = tmp_path / "a.tape"
    writer = TapeWriter(path, HEADER)
    await check_wire(RecordingWire(script_wire(), Recorder(writer, Names())))
    writer.close()
    wire = TapeWire(TapePlayer(read_tape(path), virtual=virtual))
    if virtual:
        await check_wire(wire)
    else:
        with pytest.raises(ReplayMismatch, match="was stopped there"):
            await check_wire(wire)
