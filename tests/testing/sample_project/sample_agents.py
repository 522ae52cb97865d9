"""Two agents of a few lines: one settles its calls on every way out, one only when all goes well."""

from __future__ import annotations

import trio


class Careful:
    """Asks its model once, does what it says, and has a result for every call, however it ends."""

    def __init__(self) -> None:
        self.messages: list[dict] = [{"role": "user", "content": "go"}]

    async def run(self) -> None:
        calls = [{"type": "tool_use", "id": f"c{number}", "name": "work", "input": {}} for number in range(3)]
        self.messages.append({"role": "assistant", "content": calls})
        done: dict[str, str] = {}
        try:
            async with trio.open_nursery() as nursery:
                for number, call in enumerate(calls):
                    nursery.start_soon(self._work, call["id"], number + 1, done)
        finally:
            self._settle(calls, done)

    async def _work(self, call_id: str, seconds: float, done: dict[str, str]) -> None:
        await trio.sleep(seconds)
        done[call_id] = "done"

    def _settle(self, calls: list[dict], done: dict[str, str]) -> None:
        results = [
            {"type": "tool_result", "tool_use_id": call["id"], "content": done.get(call["id"], "stopped")}
            for call in calls
        ]
        self.messages.append({"role": "user", "content": results})


class Careless(Careful):
    """Forgets the calls that were not done when it was stopped."""

    def _settle(self, calls: list[dict], done: dict[str, str]) -> None:
        super()._settle([call for call in calls if call["id"] in done], done)
