"""A session that was shortened is resumed as it was, and keeps everything on record."""

from __future__ import annotations

from pathlib import Path

from session_events import stamped

from novacode.sessions.fold import load
from novacode.sessions.journal import Journal
from novacode.sessions.record import Header
from novacode.values.compaction import compacted
from novacode.values.events import Compacted, RunBegan, TurnCommitted
from novacode.values.history import Exchange, History
from novacode.values.ids import CallId, SessionId
from novacode.values.parts import Assistant, Text, ToolCall, User
from novacode.values.results import Outcome, ToolResult


def _exchange(number: int) -> Exchange:
    call = ToolCall(CallId(f"c{number}"), 1, "read", {"path": "a"})
    said = Assistant((Text(f"step {number}"), call), "anthropic")
    return Exchange(said, (ToolResult.of(call, Outcome.OK, "x" * 3_000, began=True),))


def test_a_resumed_session_goes_on_from_the_compacted_history(tmp_path: Path) -> None:
    """Twice compacted, once with outputs alone; the ids of calls that were left out are not given away again."""
    path, history = tmp_path / "s.jsonl", History((User.said("go"),))
    events = [RunBegan(User.said("go"))]
    for number in range(9):
        events.append(TurnCommitted(_exchange(number)))
        history = history.with_exchange(_exchange(number))
        if number in (4, 7):
            event = Compacted(2, "What was done." if number == 4 else "", 1, {CallId(f"c{number}"): 500}, 9, 5)
            events.append(event)
            history = compacted(history, event)
    journal = Journal(path, Header(SessionId("s"), "/w", 1.0))
    for one in stamped(events):
        journal.append(one)
    journal.close()
    loaded, whole = load(path), load(path, whole=True)
    assert loaded.history == history
    assert [item for item in loaded.history.items if isinstance(item, User)][1].text == "What was done."
    assert loaded.call_ids == whole.call_ids == {f"c{number}" for number in range(9)}
    assert list(whole.history.exchanges) == [_exchange(number) for number in range(9)]


def test_a_damaged_record_before_a_compaction_costs_nothing_of_what_is_kept(tmp_path: Path) -> None:
    """What stays is counted from the end: a line that is lost further up does not move the cut."""
    path = tmp_path / "s.jsonl"
    events = [RunBegan(User.said("go")), *(TurnCommitted(_exchange(number)) for number in range(4))]
    journal = Journal(path, Header(SessionId("s"), "/w", 1.0))
    for one in stamped([*events, Compacted(2, "What was done.", 1)]):
        journal.append(one)
    journal.close()
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = b"damaged\n"
    path.write_bytes(b"".join(lines))
    loaded = load(path)
    assert loaded.history.items[-2:] == (_exchange(2), _exchange(3))
    assert loaded.history.items[:2] == (User.said("go"), User.said("What was done.", "runtime"))
