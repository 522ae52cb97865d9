"""Where the program starts. `--version` is answered before anything of ours but the version is imported."""

from __future__ import annotations

import sys

from novacode._version import VERSION

__all__ = ["main"]


def main() -> None:
    """Run the command line; never returns."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        sys.stdout.write(f"novacode {VERSION}\n")
        raise SystemExit(0)
    # Imported only now: the line above is what makes `--version` as fast as the bare interpreter.
    from novacode.cli.main import entry

    raise SystemExit(entry(sys.argv[1:]))


if __name__ == "__main__":
    main()
