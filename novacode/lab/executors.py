"""Where runs are carried out: processes of this machine, or a dask cluster. Both are `concurrent.futures` executors."""

from __future__ import annotations

import importlib
import multiprocessing
import signal
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from typing import Any

from novacode.errors import UsageError

__all__ = ["cluster", "let_the_parent_decide", "process_pool"]

_PATIENCE = "15s"
_STOP_SECONDS = 30.0  # for the real processes of a run, which have a grace of their own
_ASK_AGAIN_SECONDS = 0.2


def let_the_parent_decide() -> None:
    """Ignore Ctrl-C: the terminal sends it to every process of the group, and one of them has to act on it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def process_pool(jobs: int) -> Iterator[Executor]:
    """Have `jobs` fresh interpreters. Left by an exception, they are stopped in the middle of what they do."""
    others = {child.pid for child in multiprocessing.active_children()}
    # Spawned, not forked: a worker's runs are then what a fresh process would give.
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), initializer=let_the_parent_decide)
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        _stop([child for child in multiprocessing.active_children() if child.pid not in others])
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _stop(workers: Sequence[BaseProcess]) -> None:
    """Send SIGTERM until all are gone: one that has real processes to reap takes it as a request, and the next kills.

    What the pool had handed to a worker ahead of time would otherwise be begun after the first.
    """
    deadline = time.monotonic() + _STOP_SECONDS
    while left := [worker for worker in workers if worker.is_alive()]:
        for worker in left:
            if time.monotonic() < deadline:
                worker.terminate()
            else:
                worker.kill()
        left[0].join(_ASK_AGAIN_SECONDS)


@contextmanager
def cluster(address: str) -> Iterator[Executor]:
    """Have the dask cluster whose scheduler is at `address`; its workers need NovaCode, of the same version.

    Raises `UsageError` where dask is not installed, or nothing answers there. dask itself does again what a worker
    had that died; where that has killed several, `BrokenExecutor` takes the place of dask's own error.
    """
    try:
        distributed: Any = importlib.import_module("distributed")  # an extra, and half a second
    except ImportError:
        raise UsageError("--cluster needs dask, which is not installed: pip install 'novacode[lab]'") from None
    try:
        client = distributed.Client(address, timeout=_PATIENCE)
    except (OSError, TimeoutError, ValueError) as error:
        raise UsageError(f"no dask scheduler answers at {address!r}: {error}") from error
    with client:
        # Not `pure`: such an executor would give the results of earlier runs with the same arguments.
        executor: Executor = client.get_executor(pure=False)
        try:
            yield executor
        except distributed.KilledWorker as error:
            raise BrokenExecutor(str(error)) from error
