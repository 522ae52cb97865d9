"""A pseudo-terminal, and a small screen that understands what our frames use."""

import fcntl
import os
import pty
import re
import struct
import termios

import trio

_TOKEN = re.compile(r"\x1b\[(\d*)([A-Za-z])|\x1b\[[\d;]*m|[^\x1b]")


class Terminal:
    """A pair of pty ends. `fd` is the program's side, `text` is all that was shown so far."""

    def __init__(self, columns=80, rows=24):
        self.master, self.fd = pty.openpty()
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        os.set_blocking(self.master, False)
        self.columns = columns
        self.text = ""

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        os.close(self.master)
        os.close(self.fd)

    def type(self, text):
        os.write(self.master, text.encode())

    def read(self):
        while True:
            try:
                data = os.read(self.master, 65536)
            except (BlockingIOError, OSError):
                return self.text
            self.text += data.decode("utf-8", "replace")

    async def wait_for(self, words):
        with trio.fail_after(5):
            while words not in self.read():
                await trio.lowlevel.wait_readable(self.master)

    def screen(self):
        """What a person sees now, lines without their trailing blanks."""
        return screen_of(self.read(), self.columns)


def screen_of(text, columns):
    lines, row, column = [""], 0, 0
    for token in _TOKEN.finditer(text):
        count, command = int(token[1] or 1) if token[2] else 0, token[2]
        if command == "A":
            row = max(0, row - count)
        elif command == "J":
            lines = [*lines[:row], lines[row][:column]]
        elif token[0] == "\n":
            row, column = row + 1, 0
            lines += [""] * (row - len(lines) + 1)
        elif token[0] == "\r":
            column = 0
        elif len(token[0]) == 1:
            lines[row] = f"{lines[row]:<{column}}"[:column] + token[0] + lines[row][column + 1 :]
            column += 1
    assert all(len(line) <= columns for line in lines)
    return [line.rstrip() for line in lines]
