"""Files that people or other programs have written in JSON, and that settings are read from."""

from __future__ import annotations

import json
from pathlib import Path

from novacode.errors import SettingsError
from novacode.values.parts import JSON

__all__ = ["read_json"]


def read_json(path: Path, warnings: list[str]) -> JSON:
    """Return what the file at `path` holds; `None` where there is none.

    One that cannot be read is left out with a warning. Raises `SettingsError` for what is no JSON, and for `null`.
    """
    try:
        data: JSON = json.loads(path.read_bytes().decode("utf-8-sig"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        warnings.append(f"{path} cannot be read and is left out: {error.strerror or error}")
        return None
    except (ValueError, RecursionError) as error:  # UnicodeDecodeError is a ValueError
        raise SettingsError(f"{path} is not valid JSON: {error}") from error
    if data is None:
        raise SettingsError(f"{path} holds null; it must hold an object, or not be there")
    return data
