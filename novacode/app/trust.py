"""Folders a person has said to trust: `trusted.toml` in NovaCode's own folder, `folders = ["/a", …]`."""

from __future__ import annotations

import json
import os
from pathlib import Path

from novacode.app.toml import read_toml
from novacode.errors import SettingsError

__all__ = ["TrustedFolders"]


class TrustedFolders:
    """The list below `home`. Trust covers a folder and everything below it, links resolved."""

    def __init__(self, home: Path) -> None:
        self.path = home / "trusted.toml"

    def trusts(self, folder: Path) -> bool:
        """Whether `folder` is trusted. Raises `SettingsError` where the list cannot be understood."""
        real = folder.resolve()
        return any(real == one or one in real.parents for one in self._folders())

    def add(self, folder: Path) -> None:
        """Trust `folder` from now on. Raises `SettingsError` where the list cannot be written."""
        if self.trusts(folder):
            return
        folders = [*self._folders(), folder.resolve()]
        lines = "".join(f"    {json.dumps(str(one))},\n" for one in folders)
        beside = self.path.with_suffix(".new")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            beside.write_text(f"folders = [\n{lines}]\n")
            os.replace(beside, self.path)
        except OSError as error:
            raise SettingsError(f"{self.path} cannot be written: {error.strerror or error}") from error

    def _folders(self) -> tuple[Path, ...]:
        try:
            data = read_toml(self.path.read_text())
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            return ()  # unknown means not trusted
        except (OSError, ValueError) as error:
            raise SettingsError(f"{self.path} cannot be used: {error}") from error
        folders = data.get("folders", [])
        if not isinstance(folders, list) or not all(isinstance(one, str) and one.startswith("/") for one in folders):
            raise SettingsError(f"{self.path}: `folders` is {folders!r}; it must be a list of absolute paths")
        return tuple(Path(one).resolve() for one in folders)
