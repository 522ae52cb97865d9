"""Events reach everybody in one order, and nobody is waited for."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from novacode.engine.bus import Bus, Feed, Lagged
from novacode.errors import SessionError
from novacode.values.events import Stamped, TextDelta
from novacode.values.ids import RunId

RUN = RunId("s-r1")


def stamped(number: int) -> Stamped:
    return Stamped(number, RUN, 0.0, TextDelta(0, str(number)))


def test_every_sink_gets_every_event_in_subscription_order() -> None:
    bus = Bus(lambda: 3.5, seq=41)
    got: list[tuple[str, Stamped]] = []
    one, two = (lambda event: got.append(("one", event))), (lambda event: got.append(("two", event)))
    bus.subscribe(one)
    bus.subscribe(two)
    emit = bus.emitter(RUN)
    emit(TextDelta(0, "x"))
    bus.unsubscribe(one)
    emit(TextDelta(0, "y"))
    first, second = Stamped(42, RUN, 3.5, TextDelta(0, "x")), Stamped(43, RUN, 3.5, TextDelta(0, "y"))
    assert got == [("one", first), ("two", first), ("two", second)]


def test_an_event_out_of_a_sink_comes_after_the_one_under_way() -> None:
    bus = Bus(lambda: 0.0)
    emit = bus.emitter(RUN)
    got: list[int] = []

    def answers(event: Stamped) -> None:
        if event.seq == 1:
            emit(TextDelta(0, "answer"))

    bus.subscribe(answers)
    bus.subscribe(lambda event: got.append(event.seq))
    emit(TextDelta(0, "question"))
    assert got == [1, 2]


def test_a_sink_may_leave_while_it_is_called() -> None:
    bus = Bus(lambda: 0.0)
    got: list[int] = []

    def once(event: Stamped) -> None:
        bus.unsubscribe(once)

    bus.subscribe(once)
    bus.subscribe(lambda event: got.append(event.seq))
    emit = bus.emitter(RUN)
    emit(TextDelta(0, "x"))
    emit(TextDelta(0, "y"))
    assert got == [1, 2]


def test_a_session_that_cannot_be_written_is_told_once_and_hits_no_emitter() -> None:
    bus = Bus(lambda: 0.0)
    told: list[SessionError] = []
    got: list[int] = []
    bus.on_failure = told.append

    def full(event: Stamped) -> None:
        raise SessionError(f"disk full at {event.seq}")

    bus.subscribe(full)
    bus.subscribe(lambda event: got.append(event.seq))
    emit = bus.emitter(RUN)
    emit(TextDelta(0, "x"))
    emit(TextDelta(0, "y"))
    assert [str(error) for error in told] == ["disk full at 1"]
    assert bus.failure is told[0]
    assert got == [1, 2]


def test_a_bug_in_a_sink_comes_out_and_stops_no_later_event() -> None:
    bus = Bus(lambda: 0.0)
    got: list[int] = []

    def bug(event: Stamped) -> None:
        got.append(event.seq)
        if event.seq == 1:
            raise ZeroDivisionError

    bus.subscribe(bug)
    emit = bus.emitter(RUN)
    with pytest.raises(ZeroDivisionError):
        emit(TextDelta(0, "x"))
    emit(TextDelta(0, "y"))
    assert got == [1, 2]


async def test_a_feed_keeps_the_order_and_ends() -> None:
    feed = Feed()
    for number in (1, 2):
        feed.put(stamped(number))
    feed.close()
    assert [await feed.receive() for _ in range(4)] == [stamped(1), stamped(2), None, None]


async def test_a_slow_reader_is_told_how_much_it_missed() -> None:
    feed = Feed(capacity=2)
    for number in range(1, 6):
        feed.put(stamped(number))
    assert [await feed.receive() for _ in range(3)] == [Lagged(3), stamped(4), stamped(5)]
    feed.put(stamped(6))
    assert await feed.receive() == stamped(6)


async def test_a_reader_waits_for_news_and_for_the_end(autojump_clock: Any) -> None:
    feed = Feed()
    got: list[object] = []

    async def read() -> None:
        while (item := await feed.receive()) is not None:
            got.append((trio.current_time(), item))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        await trio.sleep(1)
        feed.put(stamped(1))
        await trio.sleep(1)
        feed.close()
    assert got == [(1.0, stamped(1))]


async def test_cancelling_a_reader_loses_nothing() -> None:
    feed = Feed()
    feed.put(stamped(1))
    with trio.CancelScope() as scope:
        scope.cancel()
        await feed.receive()
    assert scope.cancelled_caught
    assert await feed.receive() == stamped(1)
