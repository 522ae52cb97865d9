"""Commands and the terminal NovaCode runs in: they never read from it, and leave it as it is."""

from __future__ import annotations

import fcntl
import os
import termios
from pathlib import Path

import pytest
from doubles.command_line import Place, checking
from doubles.replies import anthropic
from terminals import Terminal

pytestmark = pytest.mark.timeout(120)

_COMMAND = (
    "wc -c /dev/stdin; printf 'b\\na\\n' | sort /dev/stdin; head -1 /dev/fd/0; read -r x; echo got:$x;"
    " : 2>/dev/null </dev/tty && echo reached; echo end"
)


def test_br_122_a_command_does_not_take_what_is_typed(tmp_path: Path) -> None:
    """The line that was typed is still there for whoever reads the terminal next, and its modes are what they were."""
    place = Place(tmp_path)
    with (
        Terminal() as terminal,
        checking([anthropic("", [("tu_1", "shell", {"command": _COMMAND})]), anthropic("Done.")]) as server,
    ):
        before = termios.tcgetattr(terminal.fd)
        terminal.type("typed\n")
        ended = place.run(
            "run", "--base-url", server.url, "-m", "anthropic/m", "--yolo", "--output-format", "json", "go",
            stdin=terminal.fd, start_new_session=True, preexec_fn=_take_terminal,
        )  # fmt: skip
        told = server.requests[-1].json["messages"][-1]["content"][0]
        assert termios.tcgetattr(terminal.fd) == before
        os.set_blocking(terminal.fd, False)
        assert os.read(terminal.fd, 100) == b"typed\n"
    assert (ended.code, ended.result["result"]) == (0, "Done.")
    assert "0 /dev/stdin\na\nb\ngot:\nend" in str(told["content"]).replace("\\n", "\n")


def _take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
