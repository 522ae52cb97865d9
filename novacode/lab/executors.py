"""Where runs are carried out: processes of this machine, or a dask cluster. Both are `concurrent.futures` executors."""

from __future__ import annotations

import importlib
import multiprocessing
import signal
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any

from novacode.errors import UsageError

__all__ = ["cluster", "let_the_parent_decide", "process_pool"]

_PATIENCE = "15s"


def let_the_parent_decide() -> None:
    """Ignore Ctrl-C: the terminal sends it to every process of the group, and one of them has to act on it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def process_pool(jobs: int) -> Iterator[Executor]:
    """Have `jobs` fresh interpreters. Left by an exception, what has not begun is given up."""
    # Spawned, not forked: a worker's runs are then what a fresh process would give.
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), initializer=let_the_parent_decide)
    try:
        yield pool
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def cluster(address: str) -> Iterator[Executor]:
    """Have the dask cluster whose scheduler is at `address`; its workers need NovaCode, of the same version.

    Raises `UsageError` where dask is not installed, or nothing answers there.
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
        yield executor
