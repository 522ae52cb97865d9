"""Without hooks every call passes as it is."""

from __future__ import annotations

import trio.testing

from novacode.authority.hooks import HookAnswer, HookWord, NoHooks
from novacode.values.ids import CallId
from novacode.values.parts import ToolCall
from novacode.values.results import Outcome, ToolResult

CALL = ToolCall(CallId("a"), 0, "work", {"x": 1})


async def test_no_hooks_change_nothing_and_take_no_time() -> None:
    result = ToolResult.of(CALL, Outcome.OK, "done", began=True)
    with trio.testing.assert_no_checkpoints():
        answer = await NoHooks().pre_tool_use(CALL)
        after = await NoHooks().post_tool_use(CALL, result)
    assert answer == HookAnswer(CALL, HookWord.PASS, "")
    assert answer.call is CALL
    assert after is result
