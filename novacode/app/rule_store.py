"""Where an "always" is kept: one file for each project, in the person's own folder.

Not in the project: its settings come with a checkout and count only once the folder is trusted, while what a person
allowed by hand in this folder has to hold the next time without that.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from novacode.app.toml import TomlError, read_toml
from novacode.errors import SettingsError
from novacode.sessions.store import project_key
from novacode.values.parts import JSON

__all__ = ["RuleStore", "personal_file"]

_HEAD = "# What you allowed for good in {cwd}. One rule a line; take a line out to be asked again.\n"


def personal_file(home: Path, cwd: Path) -> Path:
    """Return the file with what was allowed for good in `cwd`."""
    return home / "projects" / f"{project_key(cwd)}.toml"


class RuleStore:
    """Keeps rules for the folder `cwd`."""

    def __init__(self, home: Path, cwd: Path) -> None:
        self.path = personal_file(home, cwd)
        self._cwd = cwd

    def add(self, rule: str) -> str:
        """Keep `rule` as an allow rule and return where. Raises `SettingsError` where that cannot be done.

        The file is replaced as a whole, so a crash leaves the old one or the new one.
        """
        try:
            rules = [*self._rules(), rule]
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            fresh = self.path.with_suffix(f".{os.getpid()}.new")
            lines = "".join(f"  {line},\n" for line in dict.fromkeys(map(_written, rules)))
            fresh.write_text(f"{_HEAD.format(cwd=self._cwd)}[permissions]\nallow = [\n{lines}]\n", encoding="utf-8")
            fresh.replace(self.path)
        except OSError as error:
            raise SettingsError(f"{self.path} cannot be written: {error.strerror or error}") from error
        return str(self.path)

    def _rules(self) -> list[JSON]:
        try:
            data = read_toml(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return []
        except (TomlError, UnicodeDecodeError) as error:
            raise SettingsError(f"{self.path} is damaged ({error}); mend or remove it") from error
        allowed = data.get("permissions", {}).get("allow", [])
        return [item for item in allowed if isinstance(item, str | Mapping)]


def _written(item: JSON) -> str:
    """Return a rule as TOML: a text, or a table with examples that somebody has put there by hand."""
    if isinstance(item, str):
        return _quoted(item)
    if isinstance(item, Mapping):
        return "{ " + ", ".join(f"{name} = {_written(value)}" for name, value in item.items()) + " }"
    return "[" + ", ".join(_written(each) for each in item) + "]"


def _quoted(text: str) -> str:
    """Return `text` as a TOML basic string: JSON's form of it, but for DEL, which TOML wants escaped."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
