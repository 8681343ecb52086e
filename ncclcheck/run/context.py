"""What every part of a process of a run knows: who it is, what it was asked, and when it has to end."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct, field

from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.messages import SCHEMA
from ncclcheck.exchange.store.base import Store
from ncclcheck.exchange.store.opening import join_launchers, join_run
from ncclcheck.exchange.trust.handshake import Caller
from ncclcheck.exchange.trust.trust import Trust
from ncclcheck.measure.remaining import TimeLeft
from ncclcheck.model.fact import Missing
from ncclcheck.model.launch import Launch
from ncclcheck.run.options import RunOptions
from ncclcheck.timeouts import CONCLUDE_S


class Context(Struct, frozen=True):
    """A process of a run. `say` writes one line of progress for people, `show` how far a benchmark is."""

    options: RunOptions
    environ: Mapping[str, str]
    launch: Launch
    host: str
    deadline: Deadline
    say: Callable[[str], None]
    show: Callable[[TimeLeft], None] = lambda _: None
    trust: Trust = field(default_factory=Trust)

    def join(self, host: str, port: int, deadline: Deadline) -> Store | Missing:
        """Return the store that answers there, if it is of a run with this process's key."""
        caller = Caller(self.prefix, self.host, self.launch.node_rank)
        join = join_launchers if self.launch.shared_store else join_run
        return join((host, port), self.trust, caller, deadline)

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
