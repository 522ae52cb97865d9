"""Faults of a turn: reading the response, submitting calls, collecting results, committing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import trio

from novacode.engine import bus, conversation, ledger, pipeline, reply, run, turn
from novacode.errors import ModelFailed
from novacode.lab.faults.patching import Fault, Patch
from novacode.values.events import AttemptDropped, Emit, TurnCommitted
from novacode.values.history import Exchange, History
from novacode.values.parts import BrokenCall, ToolCall
from novacode.values.results import ToolResult

__all__ = ["FAULTS"]

Start = Callable[[Any], None]
Starter = Callable[[Any, Any, trio.Nursery], Start]


def _start(kit: Any, book: Any, nursery: trio.Nursery) -> Start:
    """Return what the real turn does with a call."""

    def start(call: Any) -> None:
        if isinstance(call, BrokenCall):
            book.refuse(call)
        else:
            slot = book.submit(call, kit.tools.claims(call, kit.workspace))
            nursery.start_soon(pipeline.process, slot, kit)

    return start


def _turn_with(patch: Patch, starter: Starter) -> None:
    """Put a turn in place that starts its calls with `starter`."""

    async def run_turn(kit: Any, talk: Any, request: Any, said: Any, book: Any) -> turn.TurnOutcome:
        lost = None
        try:
            async with trio.open_nursery() as nursery:
                lost = await reply.read_reply(kit, request, said, starter(kit, book, nursery))
        finally:
            exchange = talk.commit(said, book.close(), kit.emit)
        return turn.TurnOutcome(exchange, said.finish, lost)

    patch.set(run, "run_turn", run_turn)


def _retry_after_a_call(patch: Patch) -> None:
    patch.set(reply.Reply, "has_calls", property(lambda self: False, lambda self, value: None))


def _commit_outside_finally(patch: Patch) -> None:
    async def run_turn(kit: Any, talk: Any, request: Any, said: Any, book: Any) -> turn.TurnOutcome:
        async with trio.open_nursery() as nursery:
            lost = await reply.read_reply(kit, request, said, _start(kit, book, nursery))
        exchange = talk.commit(said, book.close(), kit.emit)
        return turn.TurnOutcome(exchange, said.finish, lost)

    patch.set(run, "run_turn", run_turn)


def _stream_error_in_the_nursery(patch: Patch) -> None:
    async def run_turn(kit: Any, talk: Any, request: Any, said: Any, book: Any) -> turn.TurnOutcome:
        try:
            async with trio.open_nursery() as nursery:
                lost = await reply.read_reply(kit, request, said, _start(kit, book, nursery))
                if lost is not None:
                    raise ModelFailed(lost.failure)
        finally:
            exchange = talk.commit(said, book.close(), kit.emit)
        return turn.TurnOutcome(exchange, said.finish, lost)

    patch.set(run, "run_turn", run_turn)


def _dispatch_after_the_stream(patch: Patch) -> None:
    async def run_turn(kit: Any, talk: Any, request: Any, said: Any, book: Any) -> turn.TurnOutcome:
        lost, waiting = None, list[Any]()
        try:
            async with trio.open_nursery() as nursery:
                lost = await reply.read_reply(kit, request, said, waiting.append)
                for call in waiting:
                    _start(kit, book, nursery)(call)
        finally:
            exchange = talk.commit(said, book.close(), kit.emit)
        return turn.TurnOutcome(exchange, said.finish, lost)

    patch.set(run, "run_turn", run_turn)


def _tasks_outside_the_nursery(patch: Patch) -> None:
    def starter(kit: Any, book: Any, nursery: trio.Nursery) -> Start:
        def start(call: Any) -> None:
            if isinstance(call, BrokenCall):
                book.refuse(call)
            else:
                slot = book.submit(call, kit.tools.claims(call, kit.workspace))
                trio.lowlevel.spawn_system_task(pipeline.process, slot, kit)

        return start

    _turn_with(patch, starter)


def _broken_call_repaired(patch: Patch) -> None:
    def starter(kit: Any, book: Any, nursery: trio.Nursery) -> Start:
        real = _start(kit, book, nursery)

        def start(call: Any) -> None:
            arguments = {"command": "ls"} if call.name == "shell" else {"path": "a.txt", "content": "half a text"}
            broken = isinstance(call, BrokenCall)
            real(ToolCall(call.id, call.index, call.name, arguments) if broken else call)

        return start

    _turn_with(patch, starter)


def _call_never_settled(patch: Patch) -> None:
    patch.set(ledger.Ledger, "open", property(lambda self: ()))


def _completion_order(patch: Patch) -> None:
    whole = ledger.Ledger.close

    def close(self: ledger.Ledger) -> tuple[ToolResult, ...]:
        results = whole(self)
        settled = sorted(self._slots, key=lambda slot: slot._ended_at)
        return tuple(slot.result for slot in settled if slot.result) if len(results) > 1 else results

    patch.set(ledger.Ledger, "close", close)


def _settled_twice(patch: Patch) -> None:
    whole = ledger.Slot.settle

    def settle(self: ledger.Slot, result: ToolResult) -> bool:
        whole(self, result)
        self.result = None
        return whole(self, result)

    patch.set(ledger.Slot, "settle", settle)


def _began_forgotten(patch: Patch) -> None:
    whole = ledger.Slot.cut_off

    def cut_off(self: ledger.Slot, why: str, *, limit: bool = False) -> ToolResult:
        result = whole(self, why, limit=limit)
        return attrs.evolve(result, began=False) if self._held is None else result

    patch.set(ledger.Slot, "cut_off", cut_off)


def _finished_result_lost(patch: Patch) -> None:
    patch.set(ledger.Slot, "hold", lambda self, result: None)


def _interrupted_turn_forgotten(patch: Patch) -> None:
    whole = conversation.Conversation.commit

    def commit(self: conversation.Conversation, said: Any, results: Any, emit: Emit) -> Exchange | None:
        return whole(self, said, results, emit) if said.finish is not None else None

    patch.set(conversation.Conversation, "commit", commit)


def _request_one_turn_behind(patch: Patch) -> None:
    whole = run.Run._turn

    async def one_turn(self: run.Run) -> turn.TurnOutcome:
        kit = self.kit

        def behind(history: History, output_left: int | None) -> Any:
            items = history.items[:-1] if isinstance(history.items[-1], Exchange) else history.items
            return kit.request(History(items), output_left)

        self.kit = attrs.evolve(kit, request=behind)
        try:
            return await whole(self)
        finally:
            self.kit = kit

    patch.set(run.Run, "_turn", one_turn)


def _without(patch: Patch, kind: type[Any]) -> None:
    whole = bus.Bus.emitter

    def emitter(self: bus.Bus, run_id: Any) -> Emit:
        emit = whole(self, run_id)
        return lambda event: None if isinstance(event, kind) else emit(event)

    patch.set(bus.Bus, "emitter", emitter)


FAULTS = (
    Fault("retry-after-a-call", "a response is asked for again though a call of it was submitted", _retry_after_a_call),
    Fault("commit-outside-finally", "a turn that is cancelled is not committed", _commit_outside_finally),
    Fault("stream-error-in-the-nursery", "a lost stream cancels the tools that run", _stream_error_in_the_nursery),
    Fault("dispatch-after-the-stream", "calls wait for the end of the response", _dispatch_after_the_stream),
    Fault("tasks-outside-the-nursery", "a turn ends before its calls have", _tasks_outside_the_nursery),
    Fault("broken-call-repaired", "a call with broken arguments is executed with others", _broken_call_repaired),
    Fault("call-never-settled", "what is left when a turn ends gets no result", _call_never_settled),
    Fault("completion-order", "results are in the order in which the calls ended", _completion_order),
    Fault("settled-twice", "a call gets two results", _settled_twice),
    Fault("began-forgotten", "an interrupted call is told as never begun", _began_forgotten),
    Fault("finished-result-lost", "a call that had finished is told as interrupted", _finished_result_lost),
    Fault("interrupted-turn-forgotten", "a turn without an end is not committed", _interrupted_turn_forgotten),
    Fault("request-one-turn-behind", "a request leaves out the last exchange", _request_one_turn_behind),
    Fault(
        "drop-not-told",
        "faces are not told to discard a lost response",
        lambda patch: _without(patch, AttemptDropped),
    ),
    Fault("commit-not-told", "a commit is on no record", lambda patch: _without(patch, TurnCommitted)),
)
