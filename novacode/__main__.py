"""Where the program starts. `--version` is answered before anything of ours but the version is imported."""

from __future__ import annotations

import gc
import sys

from novacode._version import VERSION

__all__ = ["is_run", "main"]


def is_run(arguments: list[str]) -> bool:
    """Whether these run a task: `novacode run …`, or options alone."""
    return bool(arguments) and (arguments[0] == "run" or arguments[0].startswith("-"))


def main() -> None:
    """Run the command line; never returns."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        sys.stdout.write(f"novacode {VERSION}\n")
        raise SystemExit(0)
    # Imports make hardly any garbage and a great many objects that stay: to look through those again and again took
    # a tenth of a one-turn task. The command line turns the collector on again when it has imported its command.
    gc.disable()
    # Imported only now: the lines above are what makes `--version` as fast as the bare interpreter.
    from novacode.cli.early import HERE, Interrupted

    if is_run(sys.argv[1:]):
        HERE.watch()
    try:
        from novacode.cli.main import entry

        code = entry(sys.argv[1:])
    except Interrupted as signalled:
        from novacode.cli.main import interrupted

        code = interrupted(signalled, sys.argv[1:])
    try:
        HERE.hold_back()
        raise SystemExit(code)
    finally:
        gc.freeze()  # the process ends, and with it its memory: to collect it first took another eighth


if __name__ == "__main__":
    main()
