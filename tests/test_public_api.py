"""The Python API: what is listed is there, and importing the package costs nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import novacode
from novacode import Setup, load_settings, open_app, parse_script
from novacode.app.choosing import scripted
from novacode.app.settings import Places
from novacode.app.setup import SessionWish


def test_every_public_name_is_there_and_nothing_else_is() -> None:
    """The list, the table of homes and the modules agree."""
    homes = [name for names in novacode._HOMES.values() for name in names.split()]
    assert sorted(homes) == sorted(novacode.__all__)
    assert [name for name in novacode.__all__ if getattr(novacode, name, None) is None] == []
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = novacode.Nothing  # type: ignore[attr-defined]


def test_the_version_imports_neither_trio_nor_httpx() -> None:
    """Nor anything else that is not in the standard library, but our own version."""
    code = (
        "import sys; sys.argv = ['novacode', '--version']\n"
        "from novacode.__main__ import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print(sorted(name for name in sys.modules if name.split('.')[0] in"
        " ('novacode', 'trio', 'httpx', 'attrs', 'attr', 'cattrs', 'click')))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines()[1] == "['novacode', 'novacode.__main__', 'novacode._version']"


async def test_a_run_from_python(tmp_path: Path) -> None:
    """The whole of it: settings, a session, a run, its end."""
    script = parse_script('[[turn]]\nsteps = [{ text = "Hello." }]\n', "here")
    settings = load_settings(Places(tmp_path / "home", tmp_path), {})
    setup = Setup(
        settings, {}, tmp_path / "home", tmp_path, session=SessionWish(keep=False), choice=scripted("mine", script)
    )
    async with open_app(setup) as app:
        ended = await app.agent.run("hi")
    assert (ended.status, ended.text) == ("completed", "Hello.")
