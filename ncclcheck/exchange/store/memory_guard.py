"""Gives up a store of torch's that a stranger fills, before the memory of this machine is gone.

torch's TCPStore takes whatever anybody sends, and keeps it in the memory of the process that serves it: node 0. A store
that is served for those who have a key needs no such guard.
"""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

from ncclcheck import timeouts
from ncclcheck.exchange.store.base import Store
from ncclcheck.exchange.store.deadline_store import DeadlineStore
from ncclcheck.model.fact import Missing

OWN_BYTES, NODE_BYTES = 96 << 20, 2 << 20  # what a run adds to node 0's memory, and so much for each node
_STATM = Path("/proc/self/statm")
_RESIDENT = 1  # the field of statm (proc(5))


def guard_memory(store: Store, nnodes: int) -> None:
    """Watch this process's memory from now on, in a thread, until the store is closed or given up."""
    if isinstance(store, DeadlineStore):
        most_bytes = OWN_BYTES + nnodes * NODE_BYTES
        threading.Thread(target=watch, args=(store, most_bytes), name="memory", daemon=True).start()


def watch(store: DeadlineStore, most_bytes: int) -> None:
    """Give up the store once this process has grown by more than so much."""
    before = _resident_bytes()
    while store.lost is None and before is not None:
        time.sleep(timeouts.MEMORY_POLL_S)
        now = _resident_bytes()
        if now is not None and now - before > most_bytes:
            megabytes = (now - before) >> 20
            store.give_up(
                Missing("error", f"somebody fills it: this process has grown by {megabytes} MB in this run")
            )


def _resident_bytes() -> int | None:
    try:
        return int(_STATM.read_text().split()[_RESIDENT]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None
