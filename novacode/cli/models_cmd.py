"""`novacode models`: the providers there are, where each is reached, and which key it wants."""

from __future__ import annotations

import json
from collections.abc import Mapping

import click

from novacode.app.settings import environment
from novacode.errors import UsageError
from novacode.models.catalog import PROVIDERS, Provider, context_window, known_models, prices_date
from novacode.values.parts import JSON

__all__ = ["command"]


@click.command("models", short_help="Providers, their models, and which keys are there.")
@click.argument("provider", required=False)
@click.option("--json", "as_json", is_flag=True, help="The same as one JSON array.")
def command(provider: str | None, as_json: bool) -> None:
    """Show the providers, or with PROVIDER its models as far as their prices are known."""
    environ = environment()
    if provider is not None and provider not in PROVIDERS:
        raise UsageError(f"there is no provider {provider!r}; there are {', '.join(PROVIDERS)}")
    if provider is not None:
        _show_models(provider, as_json)
        return
    rows = [_row(one, environ) for one in PROVIDERS.values()]
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    width = max(len(row["provider"]) for row in rows)
    for row in rows:
        click.echo(f"{row['provider']:<{width}}  {_key_words(row)}  {row['base_url'] or '(needs --base-url)'}")
    click.echo(f"\nA model is named PROVIDER/MODEL. Prices as of {prices_date()}. Without any key: --model demo")


def _show_models(provider: str, as_json: bool) -> None:
    rows = [
        {"model": f"{provider}/{name}", "context": context_window(f"{provider}/{name}")}
        for name in known_models(provider)
    ]
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    for row in rows:
        context = f"  {row['context']} tokens" if row["context"] else ""
        click.echo(f"{row['model']}{context}")
    if not rows:
        click.echo(
            f"No models of {provider} are in the table; any name it knows can be used: {provider}/MODEL", err=True
        )


def _row(provider: Provider, environ: Mapping[str, str]) -> dict[str, JSON]:
    present = next((name for name in provider.key_env if environ.get(name)), None)
    return {
        "provider": provider.name,
        "protocol": provider.protocol,
        "base_url": environ.get(provider.url_env, "") or provider.base_url,
        "key_env": list(provider.key_env),
        "key": present,
        "needs_key": provider.needs_key,
        "default_model": provider.default_model,
    }


def _key_words(row: Mapping[str, JSON]) -> str:
    """Say which key there is; never a part of the key itself."""
    if row["key"]:
        return f"key in {row['key']}"
    if not row["needs_key"]:
        return "no key needed"
    return f"no key: set {' or '.join(row['key_env'])}" if row["key_env"] else "no key"
