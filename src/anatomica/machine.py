"""What this package asks of the operating system, and what it answers where a system does not know."""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
from multiprocessing.connection import wait


def peak_memory_mb() -> float | None:
    """Largest resident memory of this process so far in MiB; None where the system does not say (Windows)."""
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10  # bytes on macOS, KiB elsewhere


def usable_cores() -> int:
    """Cores that this process may run on; all of the machine's where the system knows no affinity."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def end_with_parent() -> None:
    """End this worker process when the process that started it ends, however that one was killed.

    A worker of a pool would otherwise wait for work for ever. The parent's sentinel works on every system;
    the parent's id does not change on Windows.
    """
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
