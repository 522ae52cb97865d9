"""Reading TOML; the parser is imported when there is something to parse, and most people have no settings file."""

from __future__ import annotations

from novacode.values.parts import JSON

__all__ = ["TomlError", "read_toml"]


class TomlError(ValueError):
    """A text is not TOML; the message says where and why."""


def read_toml(text: str) -> dict[str, JSON]:
    """Return what `text` says. Raises `TomlError`."""
    import tomllib  # 5 ms

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise TomlError(str(error)) from error
