"""The watchers of the other nodes: joined in a thread beside the job, which neither waits for nor depends on them."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable

from ncclcheck.cli.watching.watch_coordinator import BEAT_BYTES, LeadPlan, WatchCoordinator
from ncclcheck.exchange.one_way import Listener
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.base import Store
from ncclcheck.exchange.watchers import Meeting, join_watchers, serve_watchers
from ncclcheck.model.codec import decode, encode
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.fact import Missing
from ncclcheck.model.job.together import Beat, NodeStudy, WatchOrder
from ncclcheck.timeouts import PROCESS_POLL_S, WATCH_LAST_WORD_S, WATCH_MEET_S, WATCH_RETRY_S, WATCH_SETTLE_S


class Peers:
    """Exchanges beats for orders. State: the connection or the store that is served, the last beat and order.

    `meeting` finds out who we are and is called in the thread; None: the job has one watcher.
    """

    def __init__(
        self, meeting: Callable[[], Meeting | None], plan: LeadPlan, say: Callable[[str], None]
    ) -> None:
        self.watcher = secrets.token_hex(8)
        self.lead: WatchCoordinator | None = None
        self.listener = Listener(self.watcher)
        self.has_key = False
        self._plan, self._say = plan, say
        self._order: WatchOrder | None = None
        self._posted: tuple[Beat, NodeStudy | None] | None = None
        self._wake, self._ends = threading.Event(), threading.Event()
        self._is_urgent = False
        self._met = False
        self._began = time.monotonic()
        self._thread = threading.Thread(target=self._work, args=(meeting,), name="peers", daemon=True)
        self._thread.start()

    @property
    def is_met(self) -> bool:
        """Return whether node 0 decides: it is reached, or this is node 0 and others have come."""
        return self.lead.has_peers if self.lead is not None else self._met

    @property
    def order(self) -> WatchOrder | None:
        """Return what node 0 said last."""
        return self.lead.order if self.lead is not None else self._order

    def post(self, beat: Beat, study: NodeStudy | None, *, urgent: bool = False) -> None:
        """Give the beat to node 0. `study` is the one that `beat.studied` counts."""
        if self.lead is not None:
            self.lead.look(beat, study)
            return
        self._posted = beat, study  # at once, as our thread may be reading it
        self._is_urgent = self._is_urgent or urgent
        self._wake.set()

    @property
    def unheard_by(self) -> str:
        """Return node 0's address where it does not hear this node, and this node hears it; "" else."""
        silent_s = self._plan.silent_s
        return "" if self.lead is not None else self.listener.heard(silent_s)

    def is_urgent(self) -> bool:
        """Return whether node 0 should look now."""
        return self.lead is not None and self.lead.is_urgent()

    def close(self, is_told: Callable[[], bool]) -> None:
        """Leave. If a rank failed (`is_told`: node 0 knows it), wait for node 0's last message."""
        deadline = time.monotonic() + WATCH_LAST_WORD_S
        while not is_told() and time.monotonic() < deadline:
            self._wake.set()
            time.sleep(PROCESS_POLL_S * 4)
        if self.lead is not None:
            self.lead.leave()
            deadline = time.monotonic() + WATCH_SETTLE_S
            while not self.lead.all_left() and time.monotonic() < deadline:
                self.lead.refresh()
                time.sleep(PROCESS_POLL_S * 4)
        self._ends.set()
        self._wake.set()
        self.listener.close()
        self._thread.join(WATCH_SETTLE_S)

    def _work(self, find: Callable[[], Meeting | None]) -> None:
        try:
            meeting = find()
        except Exception as error:  # whatever it is, it must not end the job
            self._say(f"this node is watched alone: {error}")
            return
        if meeting is None:
            return
        self.has_key = meeting.trust.key is not None or meeting.trust.asks_munge
        if meeting.launch.node_rank == 0 and meeting.launch.is_agent:
            served = serve_watchers(meeting)
            if isinstance(served, Missing):
                self._say(f"each node is watched separately: node 0 cannot serve the watchers: {served}")
                return
            self.lead = WatchCoordinator(served, self._plan)
            self._ends.wait()
            served.close()
            return
        self._follow(meeting)

    def _follow(self, meeting: Meeting) -> None:
        self.listener.open()
        has_said = False
        lost: Missing = Missing("timeout", "node 0 does not answer")
        alone_since = self._began
        while not self._ends.is_set():
            store = join_watchers(meeting)
            if isinstance(store, Missing):
                lost = store
            else:
                slot = store.add(keys.WATCH_SLOTS, 1)
                if not isinstance(slot, Missing):
                    if has_said:
                        self._say("node 0's watcher is reached again")
                    has_said = False
                    self._exchange(store, slot)
                    alone_since = time.monotonic()
                lost = store.lost or lost
                store.close()
            self._met = False
            order = self._order
            is_over = order is not None and order.left
            patience_s = WATCH_MEET_S if order is None else self._plan.silent_s
            if not has_said and not is_over and time.monotonic() - alone_since > patience_s:
                has_said = True
                self._say(f"node 0's watcher is not reached ({lost.detail}): this node is watched alone")
            self._ends.wait(WATCH_RETRY_S if self._order is not None else 1.0)

    def _exchange(self, store: Store, slot: int) -> None:
        """Pass beats and orders on until the connection breaks or we leave."""
        sent_study = 0
        while store.lost is None:
            is_last = self._ends.is_set()  # asked before: the beat that is read then says that we leave
            urgent, self._is_urgent = self._is_urgent, False
            if self._posted is not None:
                beat, study = self._posted
                if study is not None and beat.studied != sent_study:
                    store.set(keys.watch_study(slot), encode(study))
                    sent_study = beat.studied
                store.set(keys.watch_beat(slot), encode(beat))
            if urgent:
                store.add(keys.WATCH_URGENT, 1)
            data = store.get(keys.WATCH_ORDER)
            self._met = self._met or store.lost is None
            if not isinstance(data, Missing):
                try:
                    self._order = decode(data, WatchOrder, limit_bytes=BEAT_BYTES)
                except DecodeError:
                    return
            if is_last:
                return
            self._wake.wait(0.0 if self._ends.is_set() else self._plan.look_s)
            self._wake.clear()
