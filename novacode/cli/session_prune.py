"""`novacode sessions prune`: what lies beside the sessions and need not be kept for ever. The sessions stay."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path

import click

from novacode.app.file_history import keep_of
from novacode.app.home import environment, home_folder
from novacode.app.settings import Places, load_settings
from novacode.app.spilling import prune_spill
from novacode.cli.escape import visible
from novacode.workspace.pruning import Keep, prune

__all__ = ["prune_command"]


@click.command("prune", short_help="Remove old file history and old long outputs.")
@click.option("--days", type=click.IntRange(min=0), metavar="N", help="Instead of snapshots.keep_days; 0: for ever.")
@click.option("--mb", type=click.IntRange(min=0), metavar="N", help="Instead of snapshots.keep_mb; 0: no bound.")
def prune_command(days: int | None, mb: int | None) -> int:
    """Remove file history and long outputs of sessions that were not written for a while, in all projects.

    What was removed cannot be rewound, nor read in full; the sessions themselves are not touched. File history is
    pruned by itself, too, once a day in each project that is worked in.
    """
    home = home_folder(environment())
    keep = keep_of(load_settings(Places(home, Path.cwd()), environment()))
    keep = Keep(keep.days if days is None else days, keep.megabytes if mb is None else mb)
    now = datetime.datetime.now(datetime.UTC).timestamp()
    failed = False
    for text, bad in _pruned(home, keep, now):
        failed = failed or bad
        click.echo(visible(text), err=bad)
    outputs = prune_spill(home, keep.days, now)
    click.echo(f"long outputs: those of {outputs.sessions} sessions were removed, {outputs.bytes / 1e6:.1f} MB in all")
    return 1 if failed else 0


def _pruned(home: Path, keep: Keep, now: float) -> Iterator[tuple[str, bool]]:
    """Yield, for each project, what was removed, or why nothing was."""
    for folder in sorted(path for path in (home / "snapshots").glob("*") if path.is_dir()):
        try:
            done = prune(folder, keep, now, beat=lambda: None)
        except OSError as error:
            yield f"{folder.name}: {folder} cannot be written ({error.strerror or error}); nothing was removed", True
            continue
        yield f"{folder.name}: {done or 'in use, so nothing was removed'}", False
