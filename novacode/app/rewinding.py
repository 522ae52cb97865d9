"""Going back to before a call, a turn or a run: which calls that takes back, and doing it.

The session says which calls ran and in which order; the file history says what they changed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import attrs
import trio

from novacode.app.file_history import history_folder
from novacode.errors import InputError, SessionError
from novacode.sessions.fold import load
from novacode.sessions.record import Record, read_lines
from novacode.sessions.store import Session, Store
from novacode.values.events import Stamped, UserAdded
from novacode.values.ids import RunId
from novacode.values.parts import User
from novacode.workspace.changes import ChangeLog, Entry, read_log
from novacode.workspace.contents import Contents
from novacode.workspace.listing import Surveyor
from novacode.workspace.restore import Report, Work, next_rewind, restore
from novacode.workspace.rewind import Item, gaps, plan
from novacode.workspace.snapshots import EXACT, log_path
from novacode.workspace.states import digest_of

__all__ = ["Prospect", "Ran", "Story", "To", "prospect", "read_story", "rewind"]

_REWIND = "rewind-"


@attrs.frozen
class To:
    """Where to go back to. All empty: to before the last run. `turn` is of `run`, or of the last one."""

    run: str = ""
    turn: int | None = None
    call: str = ""
    undo: bool = False


@attrs.frozen
class Ran:
    """A call whose tool was entered. `unknown` is why nobody knows what it changed."""

    call: str
    name: str
    run: str
    turn: int
    told: bool = False
    unknown: str = ""


@attrs.frozen
class Story:
    """What happened in a session, in order. `runs` are ids and how their prompts begin."""

    path: Path
    cwd: Path
    runs: tuple[tuple[str, str], ...] = ()
    calls: tuple[Ran, ...] = ()

    def call(self, call: str) -> Ran | None:
        """Return the call of this id."""
        return next((ran for ran in self.calls if ran.call == call), None)


@attrs.frozen
class Prospect:
    """What going back would do. `title` says to where; `refusals` why it cannot be done as it stands."""

    story: Story
    title: str
    items: tuple[Item, ...]
    entries: tuple[Entry, ...]
    refusals: tuple[str, ...] = ()
    left_out: dict[str, str] = attrs.field(factory=dict)


def read_story(path: Path) -> Story:
    """Return the story of the session at `path`. Raises `SessionError` for a file that is none."""
    header = load(path).header
    calls: dict[str, Ran] = {}
    runs: dict[str, str] = {}
    turn = 0
    with path.open("rb") as file:
        for record in read_lines(file):
            if not isinstance(record, Record):
                continue
            data, run = record.data, str(record.data.get("run_id", ""))
            match record.type:
                case "run_began":
                    runs[run] = _prompt(record)
                    turn = 0
                case "turn_began":
                    turn = int(data["number"])
                case "call_moved" if data.get("phase") == "running":
                    calls[data["call_id"]] = Ran(data["call_id"], data["name"], run, turn)
                case "files_changed" if data.get("call_id") in calls:
                    ran = calls[data["call_id"]]
                    calls[ran.call] = attrs.evolve(ran, told=True, unknown=str(data.get("problem", "")))
                case _:
                    pass
    cwd = Path(header.cwd) if header and header.cwd else Path.cwd()
    return Story(path, cwd, tuple(runs.items()), tuple(calls.values()))


def prospect(story: Story, home: Path, to: To) -> Prospect:
    """Return what going back to `to` would do. Reads the files in question, and changes nothing.

    Raises `InputError` where there is no such point.
    """
    session = story.path.stem
    folder = history_folder(home, story.cwd)
    try:
        entries = read_log(log_path(folder, session))
    except OSError as error:
        raise SessionError(f"the file history of {session} cannot be read: {error}") from error
    title, since, start = _point(story, entries, to)
    ran = {call.call for call in story.calls}
    window = tuple(
        entry for entry in entries[start:] if entry.call in ran or entry.call.startswith(_REWIND) or entry.damage
    )
    known = {entry.call for entry in entries}
    refusals = [f"{call.name} {call.call}: {call.unknown}" for call in since if call.unknown]
    where = "in the file history of another session" if entries else "not kept any more (`snapshots.keep_days`)"
    refusals += [
        f"{call.name} {call.call}: what it changed is {where}"
        for call in since
        if call.told and not call.unknown and call.call not in known
    ]
    refusals += gaps(entry for entry in window if entry.call not in {call.call for call in since if call.unknown})
    surveyor = Surveyor(digest_of, EXACT, beat=_go_on)
    left_out = {path: why for entry in window for path, why in entry.left_out.items()}
    return Prospect(story, title, plan(window, surveyor.look), entries, tuple(refusals), left_out)


async def rewind(chosen: Sequence[Item], given: Prospect, store: Store, home: Path, now: Callable[[], float]) -> Report:
    """Make every path of `chosen` what it was, and tell the session of it: the model shall not rely on what is gone.

    Not ended by a cancellation half way. Raises `SessionError` where another process is using the session, or what is
    there now cannot be kept first; then nothing was touched.
    """
    session = store.open_file(given.story.path)
    try:
        report = await trio.to_thread.run_sync(_restored, chosen, given, history_folder(home, given.story.cwd))
        if report.done:
            _tell(session, report, given.story, now())
        return report
    finally:
        session.close()


def _restored(chosen: Sequence[Item], given: Prospect, folder: Path) -> Report:
    contents = Contents(folder)
    surveyor = Surveyor(contents.put, EXACT, beat=_go_on)
    work = Work(contents, ChangeLog(log_path(folder, given.story.path.stem)), surveyor.look)
    try:
        return restore(chosen, next_rewind(given.entries), work)
    except OSError as error:
        raise SessionError(
            f"nothing was rewound: {folder} cannot be written ({error.strerror or error}), so what is there now could"
            " not be kept first."
        ) from error


def _point(story: Story, entries: Sequence[Entry], to: To) -> tuple[str, Sequence[Ran], int]:
    """Return the words for a point, the calls that ran since, and the place in the log from which on to take back."""
    places = {entry.call: place for place, entry in enumerate(entries)}
    rewinds = [entry.call for entry in entries if entry.call.startswith(_REWIND)]
    if to.undo and not rewinds:
        raise InputError(f"there is no rewind in session {story.path.stem} to take back")
    wanted = rewinds[-1] if to.undo else to.call
    if wanted in rewinds:
        return f"before {wanted}", (), places[wanted]
    title, since = _since(story, to)
    begun = [places[call.call] for call in since if call.call in places]
    return title, since, min(begun, default=len(entries))


def _since(story: Story, to: To) -> tuple[str, Sequence[Ran]]:
    if to.call:
        ran = story.call(to.call)
        if ran is None:
            raise InputError(f"no call {to.call!r} was executed in session {story.path.stem}")
        return f"before call {ran.name} {ran.call}", story.calls[story.calls.index(ran) :]
    if not story.runs:
        raise InputError(f"session {story.path.stem} has no runs yet")
    number, (run, prompt) = _run(story, to.run)
    later = {name for name, _ in story.runs[number + 1 :]}
    turn = to.turn or 1
    since = [call for call in story.calls if call.run in later or (call.run == run and call.turn >= turn)]
    where = f"turn {to.turn} of run {run}" if to.turn else f"run {run}"
    return f"before {where} ({prompt!r})", since


def _run(story: Story, wanted: str) -> tuple[int, tuple[str, str]]:
    """Find a run by its id, by its end (`r2`), or by its number alone (`2`)."""
    runs = list(enumerate(story.runs))
    if not wanted:
        return runs[-1]
    for number, (run, prompt) in runs:
        if wanted == run or run.endswith((f"-{wanted}", f"-r{wanted}")):
            return number, (run, prompt)
    known = ", ".join(run.rpartition("-")[2] for run, _ in story.runs[-5:])
    raise InputError(f"there is no run {wanted!r} in session {story.path.stem}; its last runs are {known}")


def _go_on() -> None:
    """Half a rewind helps nobody, so nothing ends it in between."""


def _tell(session: Session, report: Report, story: Story, at: float) -> None:
    names = ", ".join(item.path for item in report.done[:20]) + (", …" if len(report.done) > 20 else "")
    text = f"(The person has put these files back to an earlier state: {names}. Read them again before you go on.)"
    run = story.runs[-1][0] if story.runs else f"{session.id}-r1"
    added = UserAdded(User.said(text, "runtime"))
    session.journal.append(Stamped(session.loaded.last_seq + 1, RunId(run), at, added))


def _prompt(record: Record) -> str:
    parts = record.data["prompt"].get("parts", [])
    text = " ".join("".join(str(part.get("text", "")) for part in parts).split())
    return text if len(text) <= 60 else f"{text[:57]}..."
