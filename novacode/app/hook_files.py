"""Files of hooks in JSON, as other agents write them: `hooks.json` beside the settings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from novacode.app.json_files import read_json
from novacode.errors import SettingsError
from novacode.values.parts import JSON

__all__ = ["read_hook_file"]


def read_hook_file(path: Path, warnings: list[str]) -> JSON:
    """Return the hooks in the file at `path`, `None` where there is no such file.

    They are below the key `hooks`, as in a settings file of another agent, whose other keys are left alone; without
    that key they are the whole file. Raises `SettingsError` for a file that is no JSON object.
    """
    data = read_json(path, warnings)
    if data is None:
        return None
    if not isinstance(data, Mapping):
        raise SettingsError(f'{path} is {data!r:.100}; it must be a JSON object, {{"hooks": {{"PreToolUse": [...]}}}}')
    return data.get("hooks", data)
