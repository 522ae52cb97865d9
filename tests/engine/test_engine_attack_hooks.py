"""The engine with hooks, cancelled at every scheduling step: nothing of theirs is left, nothing runs too late."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest
import trio
from doubles.attack import SCENARIOS, Attack, attacks, perform
from doubles.fake_model import Pause, call, end, say
from doubles.fake_processes import FakeProcesses, Program
from doubles.hooks import deny, hooks_on, own, pre, says
from doubles.records import DONE, TOOL_USE
from doubles.world import World

from novacode.authority.hook_runner import CommandHooks
from novacode.authority.hook_settings import HookSpec
from novacode.authority.hooks import HookAnswer, HookEvent
from novacode.values.events import CallReady, CallSettled, HookRan
from novacode.values.parts import ToolCall
from novacode.values.results import Outcome
from novacode.workspace.base import Command, Exit


class Logged(FakeProcesses):
    """Fake processes that write down when a hook begins, and when they are swept."""

    log: list[str]

    async def run(
        self, command: Command, output: Callable[[bytes], None], errors: Callable[[bytes], None] | None = None
    ) -> Exit:
        before = len(self.started)
        try:
            return await super().run(command, output, errors)
        finally:
            if len(self.started) > before:
                self.log.append(f"hook over {command.argv[-1]}")

    def _born(self, text: str) -> int:
        self.log.append(f"hook {text}")
        return super()._born(text)

    async def sweep(self) -> None:
        self.log.append("sweep begins")
        await super().sweep()
        self.log.append("sweep ends")


class HookedWorld(World):
    """A world whose hooks are programs; what is alive are tools and programs."""

    def __init__(self, replies: Sequence[Any], programs: Mapping[str, Program], *specs: HookSpec) -> None:
        self.programs = Logged(programs)
        services = {"processes": self.programs, "hooks": hooks_on(self.programs, *specs)}
        super().__init__(replies, services=services)
        self.programs.log = self.log

    @property
    def alive(self) -> set[str]:
        return super().alive | set(self.programs.alive.values())


def _on(event: str, command: str, **more: Any) -> HookSpec:
    return HookSpec(HookEvent(event), command, **more)


def _around_calls() -> HookedWorld:
    """Guards that take time, one that denies, feedback, and a program left in the background."""
    programs = {
        "guard": says(seconds=1, cleanup=1, leaves=("daemon",)),
        "strict": says(deny("no"), seconds=1),
        "after": says(code=2, errors=b"lint", seconds=1),
        "failed": says(seconds=1),
    }
    first = [
        call("a", "work", 1, takes=2, writes=["x"]),
        Pause(1),
        call("b", "work", 2, takes=1, writes=["x"]),
        call("c", "slow", 3),
        call("d", "work", 4, fails="exit"),
        TOOL_USE,
    ]
    specs = (
        pre("guard"),
        pre("strict", matcher="slow"),
        _on("PostToolUse", "after"),
        _on("PostToolUseFailure", "failed"),
    )
    return HookedWorld([first, DONE], programs, *specs)


def _rewriting() -> HookedWorld:
    """A rewrite that is judged again, then asked about, with a bell that outlasts the answer."""

    async def looks(told: Mapping[str, Any]) -> None:
        await trio.sleep(0.5)

    programs = {
        "rewrite": says(own(updatedInput={"takes": 1, "writes": ["y"]}), seconds=1),
        "bell": says(seconds=5),
    }
    specs = (pre("looks", function=looks), pre("rewrite", matcher="asks"), _on("Notification", "bell"))
    first = [call("a", "asks", 1, takes=3), call("b", "work", 2, takes=1, writes=["y"]), TOOL_USE]
    world = HookedWorld([first, DONE], programs, *specs)
    world.answer_all(allowed=True)
    return world


def _around_the_run() -> HookedWorld:
    """Hooks at its start, at its prompt and at its end, which wants more once."""

    def once_more(told: Mapping[str, Any]) -> Mapping[str, Any] | None:
        return None if told["stop_hook_active"] else {"decision": "block", "reason": "more"}

    programs = {"start": says(b"context", seconds=1), "prompt": says(seconds=1, cleanup=1), "stop": says(seconds=1)}
    specs = (
        _on("SessionStart", "start"),
        _on("UserPromptSubmit", "prompt"),
        _on("Stop", "stop"),
        _on("Stop", "once_more", function=once_more),
    )
    return HookedWorld([[say("one"), end()], [call("a", "work", takes=1), TOOL_USE], DONE], programs, *specs)


def _failing() -> HookedWorld:
    """Guards that fail in every way: by their limit, by rubbish, by swallowing, by not being there."""

    async def swallows(told: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            await trio.sleep(2)
        except BaseException:  # noqa: BLE001 - what a hook must never do; the run must be stopped all the same
            return {"decision": "approve"}
        return {}

    programs = {"slow": says(seconds=60, cleanup=1), "rubbish": says(b"???", seconds=1)}
    specs = (
        pre("slow", timeout=1, matcher="slow"),
        pre("rubbish", matcher="asks"),
        pre("missing", matcher="denied"),
        pre("swallows", function=swallows, matcher="work"),
    )
    names = ("slow", "asks", "denied", "work")
    first = [*(call(name, name, at) for at, name in enumerate(names, start=1)), TOOL_USE]
    return HookedWorld([first, DONE], programs, *specs)


HOOKED: dict[str, Callable[[], HookedWorld]] = {
    "hooks around calls": _around_calls,
    "hooks that rewrite": _rewriting,
    "hooks around the run": _around_the_run,
    "hooks that fail": _failing,
}


@pytest.mark.parametrize("scenario", HOOKED)
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.timeout(120)
def test_no_step_is_a_bad_one_with_hooks(scenario: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that holds without hooks, and what hooks add: see `_violations`."""
    found = {attack: broken for attack, broken in _attacked(scenario, seed, monkeypatch) if broken}
    assert found == {}


@pytest.mark.slow
@pytest.mark.parametrize("scenario", HOOKED)
@pytest.mark.timeout(600)
def test_no_step_with_hooks_under_ten_schedules(scenario: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = {}
    runs = 0
    for seed in range(10):
        for attack, broken in _attacked(scenario, seed, monkeypatch):
            runs += 1
            if broken:
                found[attack] = broken
    print(f"\n{scenario}: {runs} cancelled runs")
    assert found == {}


def _attacked(scenario: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Attack, list[str]]]:
    worlds: list[HookedWorld] = []

    def make() -> HookedWorld:
        worlds.append(HOOKED[scenario]())
        return worlds[-1]

    monkeypatch.setitem(SCENARIOS, scenario, make)
    for attack in attacks(scenario, seed):
        broken = perform(attack)
        yield attack, [*broken, *_violations(worlds[-1], attack)]


def _violations(world: HookedWorld, attack: Attack) -> Iterator[str]:
    """Judge from the records what hooks must never do."""
    log = world.log
    first = log[: log.index("run ended")]
    if "strike" in first and attack.how != "call":
        late = [
            entry for entry in first[first.index("strike") :] if entry.startswith("hook ") and " over " not in entry
        ]
        if late:
            yield f"a hook was started after the cancel: {late}"
    ran = [event for event in world.of(HookRan) if event.call_id is not None]
    known = {event.call.id: event.call.name for event in world.of(CallReady)}
    if any(known.get(event.call_id) != event.name for event in ran):
        yield f"hooks ran for calls nobody made: {ran}"
    denied = {
        event.call_id for event in ran if event.outcome in ("deny", "failed", "timeout") and event.event == "PreToolUse"
    }
    for event in world.of(CallSettled):
        result = event.result
        if result.call_id in denied and (
            result.began or result.outcome not in (Outcome.HOOK_DENIED, Outcome.CANCELLED)
        ):
            yield f"{result.call_id} was refused by a hook and is {result.outcome}, began={result.began}"
        if not result.began and any(one.call_id == result.call_id and one.event.startswith("Post") for one in ran):
            yield f"{result.call_id} never began and had a later hook"
    told = [event.command for event in world.of(HookRan)]
    if any(told.count(name) < world.programs.started.count(name) for name in world.programs.started):
        yield f"hooks {world.programs.started} ran, events tell of {told}"
    for name, count in ((name, world.programs.cancelled.count(name)) for name in set(world.programs.cancelled)):
        outcomes = [event.outcome for event in world.of(HookRan) if event.command == name]
        if sum(outcome in ("cancelled", "timeout") for outcome in outcomes) < count:
            yield f"{name} was cancelled {count} times, events tell {outcomes}"


def test_the_attack_finds_a_hook_that_is_left_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    """The checks above are worth something only if they find what they are for."""

    async def gone(self: FakeProcesses, pid: int, seconds: float) -> None:
        await trio.lowlevel.checkpoint()

    monkeypatch.setattr(FakeProcesses, "_stop", gone)
    assert any(broken for _, broken in _attacked("hooks around calls", 0, monkeypatch))


def test_the_attack_finds_a_refusal_that_is_not_heeded(monkeypatch: pytest.MonkeyPatch) -> None:
    async def asks_and_forgets(self: CommandHooks, called: ToolCall) -> HookAnswer:
        await asked(self, called)
        return HookAnswer(called)

    asked = CommandHooks.pre_tool_use
    monkeypatch.setattr(CommandHooks, "pre_tool_use", asks_and_forgets)
    assert any(broken for _, broken in _attacked("hooks around calls", 0, monkeypatch))
