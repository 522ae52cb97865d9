"""Why a program could not be started, in words for the model."""

from __future__ import annotations

import errno

from novacode.workspace.base import Command

__all__ = ["why_not_started"]


def why_not_started(command: Command, exc: OSError | ValueError) -> str:
    """Return what is wrong with `command` and what to do, with the value at fault. Nothing has been run."""
    program = repr(command.argv[0]) if command.argv else "nothing"
    if not command.argv:
        problem = "the command is empty; name a program"
    elif isinstance(exc, ValueError):
        problem = f"an argument, a variable or the folder cannot be passed on: {exc}; take the odd characters out"
    elif not command.cwd.is_dir():
        problem = f"the folder it should run in, {str(command.cwd)!r}, is not there or not a folder; name another"
    else:
        problem = _by_number(exc, command)
    return f"{program} could not be started: {problem}. Nothing was run."


def _by_number(exc: OSError, command: Command) -> str:
    match exc.errno:
        case errno.ENOENT:
            return "there is no such program, or the interpreter in its first line is missing; check the name and PATH"
        case errno.EACCES | errno.EPERM:
            return f"it may not be executed, or {str(command.cwd)!r} may not be entered; check the permissions"
        case errno.ENOTDIR:
            return "a part of its path is a file and not a folder; check the path"
        case errno.ENOEXEC:
            return "it is not a program for this system and has no '#!' line; run it with its interpreter"
        case errno.E2BIG:
            size = sum(len(word) + 1 for word in command.argv)
            return f"its arguments are too long ({size} characters); write the long text to a file and pass its name"
        case errno.ENOMEM | errno.EAGAIN:
            return "the system has no memory or no process left for it; stop something and try again"
        case errno.EMFILE | errno.ENFILE:
            return "too many files are open; try again when other calls have ended"
        case errno.ETXTBSY:
            return "somebody is still writing it; try again"
        case _:
            return f"{exc.strerror or exc}"
