"""`novacode rewind`: files back to before a call, a turn or a run."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import trio

from novacode.app.clocks import WallClock
from novacode.app.rewinding import Prospect, To, prospect, read_story, rewind
from novacode.app.settings import environment, home_folder
from novacode.cli.escape import visible
from novacode.errors import InputError, SessionError, UsageError
from novacode.sessions.store import Store
from novacode.values.parts import JSON
from novacode.workspace.restore import Report
from novacode.workspace.rewind import Item, Verdict
from novacode.workspace.states import ABSENT

__all__ = ["command"]

_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
_MOST_LEFT_OUT = 5


@click.command("rewind", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("run", required=False, default="")
@click.option("--to-turn", type=click.IntRange(min=1), metavar="N", help="To before turn N of the run.")
@click.option("--to-call", default="", metavar="ID", help="To before this call, or before this rewind.")
@click.option("--undo", is_flag=True, help="Take back the last rewind.")
@click.option("--session", default="", metavar="ID", help="Instead of the latest session of this folder.")
@click.option("-C", "--cwd", type=_FOLDER, default=None, metavar="DIR", help="Instead of the current folder.")
@click.option("--dry-run", "--preview", "dry_run", is_flag=True, help="Only say what would be done.")
@click.option("--force", is_flag=True, help="Also overwrite what you have changed since.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def command(**given: Any) -> int:
    """Put files back to what they were before RUN (its id or number; the last one where none is given).

    Only files that calls have changed are touched, and of these none that you have changed since, unless told to with
    --force. What is there now is kept first: --undo takes a rewind back.
    """
    if sum((given["undo"], bool(given["to_call"]), bool(given["run"] or given["to_turn"]))) > 1:
        raise UsageError("choose one of RUN (with --to-turn), --to-call and --undo")
    return trio.run(_rewind, given)


async def _rewind(given: dict[str, Any]) -> int:
    home = home_folder(environment())
    clock = WallClock()
    store = Store(home, clock)
    folder = (given["cwd"] or Path.cwd()).absolute()
    wanted = given["session"] or store.latest(folder)
    if not wanted:
        raise InputError("there is no session of this folder; `novacode rewind --session ID` takes another one")
    to = To(given["run"], given["to_turn"], given["to_call"], given["undo"])
    found = await trio.to_thread.run_sync(lambda: prospect(read_story(store.find(wanted, folder)), home, to))
    chosen = [item for item in found.items if _is_chosen(item, force=given["force"])]
    if not given["as_json"]:
        click.echo(_preview(found, force=given["force"]))
    if found.refusals and not given["force"]:
        raise SessionError(_refusal(found))
    report = None
    if chosen and not given["dry_run"] and _agreed(given):
        report = await rewind(chosen, found, store, home, clock)
    if given["as_json"]:
        click.echo(json.dumps(_object(found, report, force=given["force"])))
    elif report is not None:
        click.echo(_told(report, found))
    return _code(found, report, chosen)


def _is_chosen(item: Item, *, force: bool) -> bool:
    return item.verdict is Verdict.RESTORE or (force and item.verdict is Verdict.CONFLICT)


def _agreed(given: dict[str, Any]) -> bool:
    if given["yes"]:
        return True
    if sys.stdin is None or not sys.stdin.isatty() or given["as_json"]:
        raise UsageError("nobody can be asked here: give --yes to do it, or --dry-run to see what would be done")
    return click.confirm("Do this?", default=False)


def _code(found: Prospect, report: Report | None, chosen: Sequence[Item]) -> int:
    """Return 0 where everything is, or would be, as it was; 1 where something stays as it is."""
    stays = any(item.verdict is not Verdict.SAME and item not in chosen for item in found.items)
    return 1 if stays or (report is not None and report.failed) else 0


def _refusal(found: Prospect) -> str:
    return (
        f"nothing was rewound: going back to {found.title} is not known to be right. {'; '.join(found.refusals)}."
        " Go back to a later call, or take back what is known with --force."
    )


def _preview(found: Prospect, *, force: bool) -> str:
    lines = [visible(f"Back to {found.title}:")]
    lines += [f"  {_action(item, force=force)}" for item in found.items if item.verdict is not Verdict.SAME]
    if len(lines) == 1:
        lines.append("  nothing to do: every file is what it was")
    if found.left_out:
        named = [f"{visible(path)} ({why})" for path, why in list(found.left_out.items())[:_MOST_LEFT_OUT]]
        more = len(found.left_out) - len(named)
        lines.append(f"Not covered: {', '.join(named)}" + (f", and {more} more" if more else ""))
    return "\n".join(lines)


def _action(item: Item, *, force: bool) -> str:
    path = visible(item.path).replace("\n", "\\n")
    if not _is_chosen(item, force=force):
        hint = "; --force overwrites it all the same" if item.verdict is Verdict.CONFLICT else ""
        return f"leave    {path}  ({visible(item.why)}{hint})"
    what = "delete " if item.target == ABSENT else "create " if item.now == ABSENT else "restore"
    return f"{what}  {path}  ({', '.join(item.calls)}{'; ' + visible(item.why) if item.why else ''})"


def _told(report: Report, found: Prospect) -> str:
    lines = [f"{len(report.done)} of {len(found.items)} paths are what they were."]
    lines += [f"  failed   {visible(path)}: {visible(why)}" for path, why in report.failed.items()]
    lines += [f"  stays    {visible(path)}: there are other files in it" for path in report.kept_folders]
    return "\n".join([*lines, f"To take this back: novacode rewind --to-call {report.rewind}"])


def _object(found: Prospect, report: Report | None, *, force: bool) -> dict[str, JSON]:
    return {
        "to": found.title,
        "items": [
            {
                "path": item.path,
                "verdict": item.verdict.value,
                "chosen": _is_chosen(item, force=force),
                "now": item.now.kind.value,
                "target": item.target.kind.value,
                "calls": list(item.calls),
                "why": item.why,
            }
            for item in found.items
        ],
        "refusals": list(found.refusals),
        "not_covered": dict(found.left_out),
        "rewind": report.rewind if report else None,
        "done": [item.path for item in report.done] if report else [],
        "failed": dict(report.failed) if report else {},
        "kept_folders": list(report.kept_folders) if report else [],
    }
