"""What every part of one process of a run knows: who it is, what it was asked, and when it has to end."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import TypeVar

from msgspec import Struct

import ncclcheck
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.messages import SCHEMA, Finish
from ncclcheck.exchange.store.base import Store
from ncclcheck.measure.remaining import Standing
from ncclcheck.model.launch import Launch
from ncclcheck.model.report import Report
from ncclcheck.model.saved import Saved
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.run.options import RunOptions

T = TypeVar("T")
TOOL_VERSION = ncclcheck.__version__
CONCLUDE_S = 3.0  # kept back from the whole run's time to judge, write and tell the others


class Context(Struct, frozen=True):
    """One process of a run. `say` writes one line of progress for people, `show` how far a benchmark is."""

    options: RunOptions
    environ: Mapping[str, str]
    launch: Launch
    host: str
    deadline: Deadline
    say: Callable[[str], None]
    show: Callable[[Standing], None] = lambda _: None

    @property
    def prefix(self) -> str:
        """Where this run's keys live in a store that others may use too."""
        return f"ncclcheck/{SCHEMA}/{self.launch.job_id}/{self.options.number or ''}"


class Seen:
    """What this process has seen so far, so that an interrupted run still reports it; state by design."""

    def __init__(self) -> None:
        self.snapshot = Snapshot(nodes=(), viewpoint="one-node")
        self.announce: Callable[[Report, Saved], None] | None = None
        self.verdict: Finish | None = None  # node 0's, on the other nodes
        self.report_digest: str | None = None  # as node 0 confirmed it directly; None: it was not asked
        self.documents: tuple[Report, Saved] | None = None
        self.prints = True
        self.stores: list[Store] = []
        self.until_free: Callable[[], None] = lambda: None  # waits until node 0 has left the master port


def host_name() -> str:
    """This machine's name as its kernel has it, without anything a terminal would obey."""
    return "".join(letter for letter in socket.gethostname() if letter.isprintable())[:253] or "localhost"


def in_background(function: Callable[[], T], name: str) -> Future[T]:
    """The result of `function`, run in a daemon thread: wait for it with a timeout, or leave it."""
    future: Future[T] = Future()

    def work() -> None:
        try:
            future.set_result(function())
        except BaseException as error:  # handed on to whoever waits for the result
            future.set_exception(error)

    threading.Thread(target=work, name=name, daemon=True).start()
    return future
