"""`novacode serve`: the remote, for browsers and scripts."""

from __future__ import annotations

import importlib.util
import ipaddress
import signal
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import click
import trio

from novacode.app.choosing import choose, scripted
from novacode.app.clocks import WallClock
from novacode.app.interrupts import Ladder, exit_code_of
from novacode.app.scheduling import seed_scheduler
from novacode.app.setup import Setup
from novacode.cli.browser import open_page
from novacode.cli.early import HERE
from novacode.cli.escape import visible
from novacode.cli.isolation import working_folder
from novacode.cli.opening import Opening, opening_of, opening_options, setup_of
from novacode.errors import UsageError
from novacode.sessions.store import Store

if TYPE_CHECKING:
    from novacode.remote.hub import Hub
    from novacode.remote.server import Address

__all__ = ["command"]

_PORT = 8717
_FILE = click.Path(dir_okay=False, path_type=Path)
_EXISTING = click.Path(exists=True, dir_okay=False, path_type=Path)
_NEEDED = ("hypercorn", "starlette")


@attrs.frozen
class _Wish:
    """What `novacode serve` was asked for."""

    opening: Opening
    address: Address
    token_file: Path | None
    open_browser: bool
    finish: bool


@click.command("serve", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="Where to listen.")
@click.option("--port", type=click.IntRange(0, 65535), default=_PORT, show_default=True, help="0 is any free one.")
@click.option("--allow-host", multiple=True, metavar="NAME[:PORT]", help="Another name browsers know this server by.")
@click.option("--tls-cert", type=_EXISTING, metavar="FILE", help="Speak TLS with this certificate.")
@click.option("--tls-key", type=_EXISTING, metavar="FILE", help="The key of the certificate, where it is not in it.")
@click.option(
    "--insecure-plain-http",
    is_flag=True,
    help="Listen on another address than this machine's own without TLS: whoever can see the traffic can read"
    " everything, take the token out of it, and run commands here.",
)
@click.option("--token-file", type=_FILE, metavar="FILE", help="Keep the token there, so that it stays the same.")
@click.option("--open", "open_browser", is_flag=True, help="Open the page in a browser.")
@click.option("--finish", is_flag=True, help="When asked to end, wait for the runs under way; asked again, stop them.")
@opening_options
def command(**given: Any) -> int:
    """See runs live, prompt, approve and stop them in a browser, here or on a phone; docs/remote.md has the API.

    The address that is printed has a token in it. Whoever has the token can run commands on this machine.
    """
    _check_extra()
    opening = opening_of(given)
    if given["no_session"]:
        raise UsageError("--no-session: the remote keeps its sessions, so that a browser can come back to them")
    wish = _Wish(opening, _address(given), given["token_file"], given["open_browser"], given["finish"])
    if opening.deterministic or opening.scripted:
        seed_scheduler(opening.order)
    HERE.note()
    return trio.run(_serve, wish)


def _check_extra() -> None:
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise UsageError(f"the remote needs {' and '.join(missing)}: pip install 'novacode[remote]'")


def _address(given: dict[str, Any]) -> Address:
    """Return where to listen. Raises `UsageError` where others could listen, too, and nobody has said that they may."""
    from novacode.remote.server import Address  # its parts are an extra, and take a third of a second to import

    if given["tls_key"] and not given["tls_cert"]:
        raise UsageError("--tls-key is the key of a certificate: give that, too, with --tls-cert FILE")
    if not (_is_loopback(given["host"]) or given["tls_cert"] or given["insecure_plain_http"]):
        raise UsageError(
            f"--host {given['host']} can be reached by other machines, and without TLS everybody on the way can read"
            " along, take the token, and run commands here. Give a certificate with --tls-cert and --tls-key; or leave"
            " --host out and come through `ssh -L 8717:localhost:8717`; or say --insecure-plain-http."
        )
    return Address(given["host"], given["port"], given["tls_cert"], given["tls_key"], given["allow_host"])


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


class _End:
    """When the server is to end, and how fast. The methods are the steps of the interrupt ladder."""

    def __init__(self, *, finish: bool) -> None:
        self.hub: Hub | None = None
        self.reason = ""
        self.asked = trio.Event()
        self._waiting = finish

    def first(self, name: str) -> None:
        """Begin to end."""
        self.reason = name
        self.asked.set()
        _say(f"{name}: {'waiting for the runs under way' if self._waiting else 'stopping'}; again to be faster")

    def second(self) -> None:
        """Stop the runs that were waited for; where they are stopping already, kill what they wait for."""
        if self.hub is not None and self._waiting:
            self.hub.stop_all(self.reason)
        elif self.hub is not None:
            self.hub.hurry_all()
        self._waiting = False


async def _serve(wish: _Wish) -> int:
    from novacode.remote.hub import Hub  # these need the extra, too
    from novacode.remote.keys import kept_token, new_token
    from novacode.remote.server import listen, serve

    async with working_folder(wish.opening) as cwd:
        setup = _setup(wish.opening, cwd)
        token = new_token() if wish.token_file is None else kept_token(wish.token_file)
        listening = await listen(wish.address)
        end = _End(finish=wish.finish)
        ladder = Ladder(end.first, end.second)
        ladder.missed = HERE.taken
        async with trio.open_nursery() as nursery:
            await nursery.start(ladder.listen)
            hub = end.hub = Hub(setup, Store(setup.home, WallClock()), nursery, _tell_bug)
            async with trio.open_nursery() as serving:
                await serving.start(serve, hub, listening, token)
                _tell(wish, f"{listening.url}#token={token}", nursery)
                await end.asked.wait()
                await hub.close(end.reason, finish=wish.finish)
            nursery.cancel_scope.cancel()
    return exit_code_of(signal.Signals[ladder.asked])


def _setup(opening: Opening, cwd: Path) -> Setup:
    """Return what sessions are made from. What is wrong with the model is told now, not at the first prompt."""
    setup = setup_of(opening, cwd)
    if setup.settings.model == "demo" and setup.simulate:
        from novacode.remote.playground import playground  # hardly anybody plays

        choice = scripted("demo", playground())
    else:
        choice = choose(setup.settings.model, setup.settings.base_url, setup.environ)
    return attrs.evolve(setup, choice=choice, somebody=True)


def _tell(wish: _Wish, address: str, nursery: trio.Nursery) -> None:
    """Say, once, what to open, and have it opened where that is wanted. Nothing else ever shows the token."""
    click.echo(f"Open {address}")
    if not wish.opening.quiet:
        _say("whoever has this address can run commands here; Ctrl-C ends the server")
    if wish.open_browser:
        nursery.start_soon(open_page, address, _say)


def _say(text: str) -> None:
    click.echo(f"novacode: {visible(text)}", err=True)


def _tell_bug(error: Exception) -> None:
    _say("this is a bug; the server goes on")
    traceback.print_exception(error, file=sys.stderr)
