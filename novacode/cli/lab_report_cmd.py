"""`novacode lab report`: what the lab has found, as one page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from novacode.errors import InputError
from novacode.lab.report import Wish, report_page
from novacode.lab.report_data import read_data

__all__ = ["command"]

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command("report", short_help="One page about what was found.")
@click.argument("files", nargs=-1, required=True, type=_FILE, metavar="ROWS...")
@click.option("-o", "--out", type=_FILE, default=Path("report.html"), show_default=True, metavar="FILE")
@click.option("--title", default=Wish().title, metavar="TEXT")
@click.option(
    "--timelines",
    type=click.IntRange(min=0),
    default=Wish().timelines,
    show_default=True,
    help="How many runs to draw.",
)
def command(files: Sequence[Path], out: Path, title: str, timelines: int) -> None:
    """Write a page about the rows in ROWS: files that `explore`, `sweep` and `compare` wrote with --out.

    The page loads nothing and runs nothing, so it can be sent, kept and printed.
    """
    page = report_page(read_data(files), Wish(title, timelines))
    try:
        out.write_text(page, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{out} cannot be written: {error.strerror or error}") from error
    click.echo(f"{out}: {len(page) / 1000:,.0f} kB")
