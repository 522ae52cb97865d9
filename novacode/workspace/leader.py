"""A leader that the thread of the event loop has started, for programs that must not outlive that thread."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs
import trio
from trio.abc import SendStream

__all__ = ["OwnLeader"]


@attrs.define(eq=False)
class OwnLeader:
    """Implements `family.Leader`, by pidfd: Linux 5.3 and later.

    `--die-with-parent` is PR_SET_PDEATHSIG, and the kernel takes the *thread* that forked for the parent. Trio forks in
    a worker thread, which ends after ten idle seconds, and with it the command (measured: killed at 10.0 s).
    """

    stdin: SendStream | None
    _popen: subprocess.Popen[bytes]

    @classmethod
    def start(
        cls, argv: Sequence[str], cwd: Path, env: Mapping[str, str], ends: Sequence[int], *, stdin: bool
    ) -> OwnLeader:
        """Start `argv` in a session of its own; blocks for the one or two milliseconds that takes.

        `ends` are for stdout and, at the end, stderr. Raises what `subprocess.Popen` does.
        """
        source, sink = os.pipe() if stdin else (subprocess.DEVNULL, -1)
        try:
            popen = subprocess.Popen(
                list(argv), stdin=source, stdout=ends[0], stderr=ends[-1], cwd=cwd, env=env, start_new_session=True
            )
        except BaseException:
            if stdin:
                os.close(sink)
            raise
        finally:
            if stdin:
                os.close(source)
        return cls(trio.lowlevel.FdStream(sink) if stdin else None, popen)

    @property
    def pid(self) -> int:
        """Its pid."""
        return self._popen.pid

    @property
    def returncode(self) -> int | None:
        """How it ended; reaps it."""
        return self._popen.poll()

    async def wait(self) -> int:
        """Wait for its end and return how it ended."""
        code = self.returncode
        if code is None:
            fd = os.pidfd_open(self.pid)
            try:
                await trio.lowlevel.wait_readable(fd)
            finally:
                trio.lowlevel.notify_closing(fd)
                os.close(fd)
            return self._popen.wait()
        await trio.lowlevel.checkpoint()
        return code
