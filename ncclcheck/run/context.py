"""What every part of a process of a run knows: who it is, what it was asked, and when it has to end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import TypeVar

from msgspec import Struct

from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.messages import SCHEMA
from ncclcheck.measure.remaining import Standing
from ncclcheck.model.launch import Launch
from ncclcheck.run.options import RunOptions
from ncclcheck.timeouts import CONCLUDE_S

T = TypeVar("T")


class Context(Struct, frozen=True):
    """A process of a run. `say` writes one line of progress for people, `show` how far a benchmark is."""

    options: RunOptions
    environ: Mapping[str, str]
    launch: Launch
    host: str
    deadline: Deadline
    say: Callable[[str], None]
    show: Callable[[Standing], None] = lambda _: None

    @property
    def prefix(self) -> str:
        """Return where this run's keys live in a store that others may use too."""
        return f"ncclcheck/{SCHEMA}/{self.launch.job_id}/{self.options.number or ''}"

    @property
    def is_alone(self) -> bool:
        """Return whether this process is the whole job."""
        return self.launch.world_size == 1 and self.launch.nnodes == 1

    def steps_deadline(self) -> Deadline:
        """Return when the steps have to have ended: some time is kept to judge, write and tell the others."""
        return Deadline(self.deadline.left() - min(CONCLUDE_S, self.options.timeout_s / 5))

    def join_deadline(self) -> Deadline:
        """Return until when nodes may join, counted from now."""
        return self.deadline.within(self.options.join_timeout_s)


def in_background(function: Callable[[], T], name: str) -> Future[T]:
    """Run the function in a daemon thread; wait for the result with a timeout, or leave it."""
    future: Future[T] = Future()

    def work() -> None:
        try:
            future.set_result(function())
        except BaseException as error:  # handed on to whoever waits for the result
            future.set_exception(error)

    threading.Thread(target=work, name=name, daemon=True).start()
    return future
