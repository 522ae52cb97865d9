"""The files of the page: a list of what is in the package, read once. Nothing else can be asked for."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources

__all__ = ["files_of_the_page"]

_TYPES = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
    "png": "image/png",
    "ico": "image/x-icon",
    "json": "application/json",
    "woff2": "font/woff2",
}
_NONE = b"""<!doctype html><html lang="en"><meta charset="utf-8"><title>NovaCode</title>
<p>This package was built without its page; the API of docs/remote.md works.</p></html>
"""


def files_of_the_page() -> Mapping[str, tuple[str, bytes]]:
    """Return name -> type and content of each file of the page."""
    found: dict[str, tuple[str, bytes]] = {"index.html": (_TYPES["html"], _NONE)}
    folder = resources.files("novacode.remote") / "page"
    if folder.is_dir():
        for file in folder.iterdir():
            kind = _TYPES.get(file.name.rpartition(".")[2])
            if kind is not None and file.is_file():
                found[file.name] = (kind, file.read_bytes())
    return found
