"""One turn: a response of the model and the calls it proposed, in one nursery. Start reading here."""

from __future__ import annotations

import attrs
import trio

from novacode.engine.conversation import Conversation
from novacode.engine.kit import Kit
from novacode.engine.ledger import Ledger
from novacode.engine.pipeline import process
from novacode.engine.reply import Lost, Reply, read_reply
from novacode.values.events import Finished
from novacode.values.history import Exchange
from novacode.values.parts import BrokenCall, ToolCall
from novacode.values.request import ModelRequest

__all__ = ["TurnOutcome", "run_turn"]


@attrs.frozen(eq=False, repr=False)
class TurnOutcome:
    """What a turn came to. `exchange` is what became history, `finish` is missing where the response broke off."""

    exchange: Exchange | None
    finish: Finished | None
    lost: Lost | None


async def run_turn(kit: Kit, talk: Conversation, request: ModelRequest, reply: Reply, ledger: Ledger) -> TurnOutcome:
    """Ask the model, run what it calls while it still speaks, and make the whole of it history.

    The nursery owns every tool of the turn, so the turn cannot end before they have. The commit is in `finally` and
    has no checkpoint: whatever ends the turn, what was done is on record, each call with one result. `reply` and
    `ledger` are new, and hold what came of the turn also where this raises.
    """
    lost: Lost | None = None

    def start(call: ToolCall | BrokenCall) -> None:  # in the receiving task: order is program order
        if isinstance(call, BrokenCall):
            ledger.refuse(call)
        else:
            slot = ledger.submit(call, kit.tools.claims(call, kit.workspace))
            nursery.start_soon(process, slot, kit, name=f"{call.name} {call.id}")

    try:
        async with trio.open_nursery() as nursery:
            # A loss is returned: raised here it would cancel the tools that are running.
            lost = await read_reply(kit, request, reply, start)
    finally:
        exchange = _commit(kit, talk, reply, ledger)
    return TurnOutcome(exchange, reply.finish, lost)


@trio.lowlevel.enable_ki_protection
def _commit(kit: Kit, talk: Conversation, reply: Reply, ledger: Ledger) -> Exchange | None:
    return talk.commit(reply, ledger.close(), kit.emit)
