"""Output of programs as plain text for a model: no escape sequences, nothing invisible."""

from __future__ import annotations

import re

__all__ = ["plain"]

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|\x1b[\]PX^_][^\x07\x1b\x9c]{0,4096}(?:\x07|\x1b\\|\x9c)"  # OSC, DCS, SOS, PM, APC: strings with an end
    r"|\x1b[ -/]*[0-~]"  # two-character sequences
)
_VISIBLE = {code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\t\n"} | {0x7F: "\u2421"}
_VISIBLE |= {code: f"\\x{code:02x}" for code in range(0x80, 0xA0)}
_RUN = re.compile("([\u2400-\u241f\u2421])\\1{7,}")
_UNPAIRED = re.compile("[\ud800-\udfff]")


def plain(text: str) -> str:
    r"""Return `text` without escape sequences and with other control characters visible.

    A `\r` becomes a line end, as a progress bar means it; NUL and the like become their pictures (`␀`), and a run of
    eight or more of one is written `␀×123`. The result is valid Unicode whatever came in. Linear.
    """
    if text.isascii() and text.isprintable():
        return text
    text = _ESCAPES.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    text = _UNPAIRED.sub("\ufffd", text.translate(_VISIBLE))
    return _RUN.sub(lambda run: f"{run[1]}×{len(run[0])}", text)
