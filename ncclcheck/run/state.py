"""What a process of a run knows so far: the mutable part, so that an interrupted run still reports it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ncclcheck.exchange.early_reports import EarlyReports
from ncclcheck.exchange.gather import Arrivals
from ncclcheck.exchange.node_report import NOTHING_COMMON, ReportReader
from ncclcheck.exchange.probe.reachability import Target
from ncclcheck.exchange.roster import Member
from ncclcheck.exchange.store.base import Store
from ncclcheck.model.report import Report
from ncclcheck.model.saved import Saved
from ncclcheck.model.snapshot import Snapshot

if TYPE_CHECKING:
    from ncclcheck.run.steps.finish import Finish


class RunState:
    """What this process knows so far; state by design. The steps of the coordinator fill the second part."""

    def __init__(self) -> None:
        self.snapshot = Snapshot(nodes=(), viewpoint="one-node")
        self.announce: Callable[[Report, Saved], None] | None = None  # on the coordinator: tell the others
        self.verdict: Finish | None = None  # node 0's, on the other nodes
        self.documents: tuple[Report, Saved] | None = None  # node 0's, on the other nodes
        self.report_digest: str | None = None  # as node 0 confirmed it directly; None: it was not asked
        self.prints = True
        self.writes = True  # False: another process of this node writes the files
        self.stores: list[Store] = []
        self.until_free: Callable[[], None] = lambda: None  # waits until node 0 has left the master port

        self.reports = EarlyReports(ReportReader(NOTHING_COMMON))
        self.arrivals = Arrivals({}, {}, 0.0)
        self.agents: tuple[Member, ...] = ()  # of the nodes that reported, by node rank
        self.further: tuple[Member, ...] = ()  # further ranks of these nodes
        self.reached: tuple[Member, ...] = ()  # those of them that answered the first order
        self.targets: dict[int, tuple[Target, ...]] = {}  # ticket -> listeners
        self.own_ticket: int | None = None  # None: the coordinator is no node of the run
        self.orders_given = 0
        self.still_before_s = 0.0  # how long this process had stood still when it began to lead
        self.held = ""  # workers of a benchmark that did not end, as a sentence
        self.gone: frozenset[int] = (
            frozenset()
        )  # tickets that no longer answer: the end does not wait for them
        self.is_over = False  # no participant can be given orders any more

    @property
    def is_read(self) -> bool:
        """Return whether another process of the run reads the report and the snapshot."""
        hellos = self.arrivals.hellos.items()
        return any(hello.reads for ticket, hello in hellos if ticket != self.own_ticket)
