"""Opens the store of a run: the only place that knows which media there are.

A shared folder is opened by `store.shared_folder`, since node 0 has to be found there first.
"""

from __future__ import annotations

from ncclcheck.exchange.store.base import Store
from ncclcheck.exchange.store.deadline_store import DeadlineStore, first_line
from ncclcheck.exchange.store.memory import MemoryBackend
from ncclcheck.exchange.store.pipe import Pipe
from ncclcheck.exchange.store.tcp import hands_over, join, load_torch, loaded_torch, serve, torch_word

__all__ = [
    "first_line",
    "hands_over",
    "join",
    "load_torch",
    "loaded_torch",
    "over_pipe",
    "serve",
    "torch_word",
    "within_process",
]


def within_process(memory: MemoryBackend, port: int) -> Store:
    """Return the store whose values are in this process; the ranks of a benchmark meet at `port`."""
    return DeadlineStore(memory, port)


def over_pipe(pipe: Pipe, port: int) -> Store:
    """Return the store that the process at the other end of the pipe has."""
    return DeadlineStore(pipe, port)
