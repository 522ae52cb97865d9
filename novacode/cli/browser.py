"""Opening a page in the person's browser, without anybody else seeing its address."""

from __future__ import annotations

import html
import os
import tempfile
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import trio

__all__ = ["open_page"]

_PAGE = """<!doctype html>
<meta charset="utf-8">
<title>NovaCode</title>
<meta http-equiv="refresh" content="0; url={address}">
<p><a href="{address}">Open NovaCode</a></p>
"""


async def open_page(address: str, say: Callable[[str], None]) -> None:
    """Have a browser open `address`, and stay until cancelled: what leads there is removed then.

    The browser is given a file for its owner alone that leads to the address. On a command line, everybody on this
    machine could read the token in it. Cancelling does not wait for a browser that runs in the foreground. Where no
    browser can be opened `say` is told so, in words.
    """
    try:
        page = _leading_to(address)
    except OSError as error:
        say(f"no browser was opened: {error.strerror or error}")
        return
    try:
        if not await trio.to_thread.run_sync(webbrowser.open, page.as_uri(), abandon_on_cancel=True):
            say("no browser could be opened: there is none, or it has failed; $BROWSER names one")
        await trio.sleep_forever()
    finally:
        with suppress(OSError):
            page.unlink()


def _leading_to(address: str) -> Path:
    """Write the file and return its path; at once, since it is one line on a local disk."""
    fd, name = tempfile.mkstemp(".html", "novacode-")
    with os.fdopen(fd, "w", encoding="utf-8") as file:
        file.write(_PAGE.format(address=html.escape(address)))
    return Path(name)
