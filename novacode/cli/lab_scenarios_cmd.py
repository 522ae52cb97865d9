"""`novacode lab scenarios`: what there is to explore."""

from __future__ import annotations

import click

from novacode.lab.scenario import find_scenario, packaged

__all__ = ["command"]


@click.command("scenarios", short_help="List the scenarios that come with NovaCode.")
@click.option("--show", metavar="NAME", help="Print one of them, as a file to start from.")
def command(show: str | None) -> None:
    """List the packaged scenarios and what each is about."""
    if show is not None:
        click.echo(find_scenario(show).text or "", nl=False)
        return
    width = max(map(len, packaged()))
    for name in packaged():
        first = (find_scenario(name).text or "").splitlines()[0]
        click.echo(f"{name:<{width}}  {first.removeprefix('#').strip()}")
