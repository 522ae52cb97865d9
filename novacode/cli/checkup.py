"""What NovaCode finds on this machine: each thing with what was found, and with what to do where it is missing."""

from __future__ import annotations

import enum
import importlib.metadata
import locale
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import attrs
import trio

from novacode._version import VERSION
from novacode.app.mcp_servers import try_servers
from novacode.app.sandboxing import try_sandbox
from novacode.app.settings import Places, home_folder, load_settings
from novacode.authority import shfmt
from novacode.errors import NovaError, SettingsError, ToolFailed
from novacode.models.catalog import PROVIDERS
from novacode.tools.toolset import Toolset
from novacode.values.ids import CallId
from novacode.workspace.base import Command
from novacode.workspace.processes import RealProcesses

__all__ = ["Check", "State", "checkup"]

_OLDEST = (3, 11)
_NEEDED = ("trio", "httpx", "attrs", "cattrs", "click", "rich", "pathspec")
_OPTIONAL = {"prompt_toolkit": "tui", "orjson": "fast"}
_PATIENCE = 10.0
"""Seconds for the process that is started and stopped; it takes a tenth of one."""


class State(enum.StrEnum):
    """How something is: `NOTE` can be done without, `WRONG` cannot."""

    OK = "ok"
    NOTE = "note"
    WRONG = "wrong"


@attrs.frozen
class Check:
    """One thing that was looked at. `advice` is what to do, empty where nothing is to be done."""

    name: str
    state: State
    found: str
    advice: str = ""


async def checkup(environ: Mapping[str, str], terminals: Sequence[bool]) -> tuple[Check, ...]:
    """Look at everything. `terminals` says of standard input, output and error whether each is a terminal."""
    return (
        *_python(),
        *await _programs(environ),
        await _stopping(),
        *_own_folder(environ),
        *await _servers(environ),
        _keys(environ),
        *_terminal(environ, terminals),
    )


def _python() -> Iterator[Check]:
    version = platform.python_version()
    fits = sys.version_info >= _OLDEST
    yield Check("novacode", State.OK, f"{VERSION}, on {platform.system()} {platform.release()}")
    yield Check(
        "python", _needed(fits), f"{version} ({sys.executable})", "" if fits else "install Python 3.11 or later"
    )
    for name in _NEEDED:
        found = _installed(name)
        yield Check(name, _needed(found), found or "not installed", "" if found else f"pip install {name}")
    for name, extra in _OPTIONAL.items():
        found = _installed(name)
        advice = "" if found else f"optional: pip install 'novacode[{extra}]'"
        yield Check(name, _wanted(found), found or "not installed", advice)


async def _programs(environ: Mapping[str, str]) -> tuple[Check, ...]:
    """Look for other programs. None is needed: each makes something possible, or faster."""
    parser = shfmt.find()
    return (
        await _program("git", ("git", "--version"), "without it there is no --worktree; install git"),
        await _program("rg", ("rg", "--version"), "searches of large folders take longer; install ripgrep"),
        Check(
            "shfmt",
            _needed(parser),
            parser or "not there",
            "" if parser else "no shell line can be judged, so every one asks: pip install shfmt-py",
        ),
        await _sandbox(environ),
    )


async def _sandbox(environ: Mapping[str, str]) -> Check:
    """Start a command in the sandbox that `--sandbox` would use, over an empty folder."""
    try:
        with tempfile.TemporaryDirectory() as made:
            sandbox = await try_sandbox(environ, [Path(made)], home_folder(environ), Path(made))
    except (SettingsError, OSError) as error:
        return Check(
            "sandbox", State.NOTE, str(error), "commands cannot be confined here: --sandbox will refuse to run"
        )
    return Check("sandbox", State.OK, f"{sandbox.version} ({sandbox.program}), tried; used where --sandbox asks for it")


async def _program(name: str, argv: Sequence[str], advice: str) -> Check:
    path = shutil.which(name)
    if path is None:
        return Check(name, State.NOTE, "not there", advice)
    out = bytearray()
    try:
        with trio.fail_after(_PATIENCE):
            ended = await RealProcesses().run(Command(argv, Path("/"), CallId("doctor")), out.extend)
    except (ToolFailed, trio.TooSlowError) as error:
        return Check(name, State.NOTE, f"{path} does not start: {error}", advice)
    lines = out.decode("utf-8", "replace").splitlines()
    if ended.code or not lines:
        return Check(name, State.NOTE, f"{path} ended with {ended.code}", advice)
    return Check(name, State.OK, f"{lines[0].strip()} ({path})")


async def _stopping() -> Check:
    """Start a daemon that leaves its session and its parent, and see whether it is found and stopped again."""
    processes = RealProcesses()
    advice = "what commands leave running may outlive a run here; NovaCode says so when it happens"
    daemon = "(setsid sleep 60 </dev/null >/dev/null 2>&1 &)"
    try:
        with trio.fail_after(_PATIENCE):
            ended = await processes.run(Command(("sh", "-c", daemon), Path("/"), CallId("doctor")), lambda _: None)
            await processes.sweep()
    except (ToolFailed, trio.TooSlowError) as error:
        return Check("stopping", State.WRONG, f"a process could not be started and stopped: {error}", advice)
    reaped = processes.reaped
    if reaped.survivors or (ended.background and not reaped.processes):
        return Check("stopping", State.WRONG, f"a daemon outlived its stop: {list(reaped.survivors)}", advice)
    if processes.weakness or not reaped.processes:
        return Check("stopping", State.NOTE, processes.weakness or "a daemon was not found again", advice)
    return Check("stopping", State.OK, "a daemon that left its session and its parent was found and stopped")


def _own_folder(environ: Mapping[str, str]) -> Iterator[Check]:
    home = home_folder(environ)
    nearest = next(folder for folder in (home, *home.parents) if folder.exists())
    writable = _can_write(nearest)
    yield Check(
        "home",
        State.OK if writable else State.NOTE,
        f"{home}{'' if writable else ' cannot be written'}",
        "" if writable else "sessions are kept in memory only; set NOVACODE_HOME to a folder that can be written",
    )
    try:
        settings = load_settings(Places(home, Path.cwd()), environ)
    except NovaError as error:
        yield Check("settings", State.WRONG, str(error), "no run starts before that is mended")
        return
    state = State.NOTE if settings.warnings else State.OK
    yield Check("settings", state, "; ".join(settings.warnings) or "can be read", "")


async def _servers(environ: Mapping[str, str]) -> tuple[Check, ...]:
    """Start every MCP server that a run in this folder would start, and stop it again."""
    try:
        settings = load_settings(Places(home_folder(environ), Path.cwd()), environ)
    except NovaError:
        return ()  # told with the settings
    servers, _ = await try_servers(settings, RealProcesses(), Path.cwd(), environ, Toolset(()))
    return tuple(
        Check(
            f"mcp {server.config.name}",
            State.NOTE if server.why else State.OK,
            server.why or f"{server.state.value}, {len(server.tools)} tools",
            "its tools are not there; see docs/mcp.md" if server.why else "",
        )
        for server in servers
    )


def _can_write(folder: Path) -> bool:
    """Try it: what the permissions say is not all there is, on a full disk or a read-only system."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _keys(environ: Mapping[str, str]) -> Check:
    """Name the variables that hold keys; never a part of a key."""
    wanted = dict.fromkeys(name for provider in PROVIDERS.values() for name in provider.key_env)
    found = [name for name in wanted if environ.get(name)]
    if found:
        return Check("keys", State.OK, ", ".join(found))
    return Check(
        "keys",
        State.NOTE,
        "none is set",
        "`novacode models` names the variable of each provider; without a key: novacode demo, or a server of your own"
        " with --base-url",
    )


def _terminal(environ: Mapping[str, str], terminals: Sequence[bool]) -> Iterator[Check]:
    names = ("input", "output", "error")
    missing = [name for name, there in zip(names, terminals, strict=True) if not there]
    able = environ.get("TERM", "dumb") not in ("", "dumb", "unknown")
    asks = terminals[0] and terminals[2]
    found = f"TERM={environ.get('TERM', '')}" + (f"; standard {', '.join(missing)} is none" if missing else "")
    yield Check(
        "terminal",
        State.OK if able and asks else State.NOTE,
        found,
        ""
        if able and asks
        else "progress comes in plain lines"
        if asks
        else "nobody can be asked here, so what no rule allows is denied at once",
    )
    encoding = locale.getpreferredencoding(False)
    utf8 = encoding.casefold().replace("-", "") == "utf8"
    yield Check(
        "encoding",
        State.OK if utf8 else State.NOTE,
        encoding,
        "" if utf8 else "signs outside of it are shown as escapes; set LC_ALL=C.UTF-8",
    )


def _installed(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _needed(there: object) -> State:
    return State.OK if there else State.WRONG


def _wanted(there: object) -> State:
    return State.OK if there else State.NOTE
