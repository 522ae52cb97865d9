"""Files of hooks in JSON, as other agents write them: `hooks.json` beside the settings."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from novacode.errors import SettingsError
from novacode.values.parts import JSON

__all__ = ["read_hook_file"]


def read_hook_file(path: Path, warnings: list[str]) -> JSON:
    """Return the hooks in the file at `path`, `None` where there is no such file.

    They are below the key `hooks`, as in a settings file of another agent, whose other keys are left alone; without
    that key they are the whole file. Raises `SettingsError` for a file that is no JSON object.
    """
    try:
        data = json.loads(path.read_bytes().decode("utf-8-sig"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        warnings.append(f"{path} cannot be read and is left out: {error.strerror or error}")
        return None
    except (ValueError, RecursionError) as error:  # UnicodeDecodeError is a ValueError
        raise SettingsError(f"{path} is not valid JSON: {error}") from error
    if not isinstance(data, Mapping):
        raise SettingsError(f'{path} is {data!r:.100}; it must be a JSON object, {{"hooks": {{"PreToolUse": [...]}}}}')
    return data.get("hooks", data)
