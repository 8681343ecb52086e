"""Node 0's watcher as the one that decides: reads the beats of all nodes, has all ranks studied, names the culprit."""

from __future__ import annotations

import time
from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.exchange.one_way import call
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.base import Store
from ncclcheck.measure.watching.blocked import named
from ncclcheck.measure.watching.decision import JobStudy, after_news, decide_job, shortened
from ncclcheck.measure.watching.first_end import in_order
from ncclcheck.measure.watching.job_progress import Pace, Signs, next_job_pace, patience_s, rested, still_s
from ncclcheck.model.codec import decode, encode
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.fact import Missing
from ncclcheck.model.job.together import Beat, NodeStudy, RankEnd, WatchOrder
from ncclcheck.model.job.watched import Look, Watch
from ncclcheck.timeouts import WATCH_ANSWER_S, WATCH_CALLED_S, WATCH_SETTLE_S, WATCH_SILENT_S, WATCH_STUDY_S

MOST_WATCHERS = 1 << 15
BEAT_BYTES = 1 << 20
_BEATS_MISSED = 3
_MOST_UNREAD = 8
_CALLED_AFTER, _MOST_CALLED = 1.5, 64  # beats that are missing, nodes
_OK = Watch("ok")


class LeadPlan(Struct, frozen=True):
    """How often beats come, how long the job may stand still, and how long two stacks of a rank take."""

    look_s: float
    patience_s: float
    apart_s: float

    @property
    def silent_s(self) -> float:
        """Return after how many seconds without a beat a node counts as silent."""
        return max(WATCH_SILENT_S, _BEATS_MISSED * self.look_s)


class _Node:
    """A node as its beats show it. State: the last beat, its time, and the last study that was asked for."""

    def __init__(self, slot: int) -> None:
        self.slot = slot
        self.beat: Beat | None = None
        self.heard_s = time.monotonic()
        self.behind_s = 0.0
        self.study: NodeStudy | None = None


class WatchCoordinator:
    """Decides over all nodes. `order`: the last order to them."""

    def __init__(self, store: Store, plan: LeadPlan) -> None:
        self.order = WatchOrder(0)
        self._store, self._plan = store, plan
        self._nodes: dict[int, _Node] = {}
        self._pace = Pace(Look(time.monotonic(), ()), time.monotonic())
        self._urgent = 0
        self._asked_s: float | None = None  # since when all ranks are being studied
        self._study_next_s = 0.0
        self._ends_since: float | None = None
        self._ends_told = 0
        self._silent: frozenset[str] = frozenset()
        self._standing: frozenset[tuple[str, int]] = frozenset()
        self._holds = _OK  # the gravest decision that has not passed

    @property
    def hosts(self) -> tuple[str, ...]:
        """Return the nodes whose watchers have come."""
        beats = (node.beat for node in self._nodes.values())
        return tuple(dict.fromkeys(beat.host for beat in beats if beat is not None))

    @property
    def has_peers(self) -> bool:
        """Return whether another watcher has come."""
        return sum(node.beat is not None for node in self._nodes.values()) > 1

    def is_urgent(self) -> bool:
        """Return whether a node has something to say that should be read now."""
        value = self._store.get(keys.WATCH_URGENT)
        count = int(value) if isinstance(value, bytes) and value.isdigit() else 0
        is_new, self._urgent = count != self._urgent, count
        return is_new or (self._ends_since is not None and not self._ends_told)

    def all_left(self) -> bool:
        """Return whether every watcher but ours has said its last word, or fell silent."""
        now = time.monotonic()
        living = (
            node for node in self._nodes.values() if node.slot and now - node.heard_s < self._plan.silent_s
        )
        return all(node.beat is None or node.beat.left for node in living)

    def look(self, own_beat: Beat, study: NodeStudy | None) -> None:
        """Read what all nodes say, and decide."""
        now = time.monotonic()
        self._hear(0, own_beat, now)
        self._nodes[0].study = study if own_beat.studied == self.order.study else None
        self._read(now)
        self._note_ends(now)
        if self.has_peers:
            self._call_unheard(now)
            self._note_silent(now)
            self._note_standing()
            self._follow(now, own_beat.ranks > 0)

    def study_now(self) -> None:
        """Have all ranks studied, whatever they do."""
        if self._asked_s is None:
            self._asked_s = time.monotonic()
            self._broadcast(replace(self.order, study=self.order.study + 1))

    def refresh(self) -> None:
        """Read the beats once more, without deciding."""
        self._read(time.monotonic())

    def leave(self) -> None:
        """Tell the others that the job of this node has ended."""
        self._broadcast(replace(self.order, left=True))

    def _read(self, now: float) -> None:
        drawn = self._store.get(keys.WATCH_SLOTS)
        count = int(drawn) if isinstance(drawn, bytes) and drawn.isdigit() else 0
        for slot in range(1, min(count, MOST_WATCHERS) + 1):
            known = self._nodes.get(slot)
            if known is not None and known.beat is not None and known.beat.left:
                continue
            data = self._store.get(keys.watch_beat(slot))
            if isinstance(data, Missing):
                continue
            try:
                self._hear(slot, decode(data, Beat, limit_bytes=BEAT_BYTES), now)
            except DecodeError:
                continue
        self._forget_replaced()

    def _hear(self, slot: int, beat: Beat, now: float) -> None:
        node = self._nodes.setdefault(slot, _Node(slot))
        if node.beat is not None and node.beat.number == beat.number:
            return
        behind_s = time.time() - beat.sent_s
        # The way and our look only add to it: the least is nearest to what the clocks differ by.
        node.behind_s = behind_s if node.beat is None else min(node.behind_s, behind_s)
        node.beat, node.heard_s = beat, now
        if slot and beat.studied == self.order.study and node.study is None and self._asked_s is not None:
            data = self._store.get(keys.watch_study(slot))
            if not isinstance(data, Missing):
                try:
                    node.study = decode(data, NodeStudy, limit_bytes=BEAT_BYTES)
                except DecodeError:
                    node.study = None

    def _forget_replaced(self) -> None:
        """Drop the slots of watchers that have joined again, after a broken connection."""
        last = {
            node.beat.watcher: slot for slot, node in sorted(self._nodes.items()) if node.beat is not None
        }
        for slot, node in list(self._nodes.items()):
            if node.beat is not None and last[node.beat.watcher] != slot:
                del self._nodes[slot]

    def _note_ends(self, now: float) -> None:
        ends = self._ends()
        if not ends:
            return
        self._ends_since = now if self._ends_since is None else self._ends_since
        if len(ends) == self._ends_told or now - self._ends_since < WATCH_SETTLE_S:
            return
        self._ends_told = len(ends)
        clocks = {node.beat.host: node.behind_s for node in self._nodes.values() if node.beat is not None}
        first, *later = in_order(ends, clocks)
        victims = sorted({end.rank.rank for end in later if end.rank.rank is not None} - {first.rank.rank})
        since_s = max(0.0, time.time() - first.at_s)
        beats = (node.beat for node in self._nodes.values() if node.beat is not None)
        interrupted_hosts = sorted({beat.host for beat in beats if beat.interrupted})
        remarks = (
            (f"a signal told the watcher of {', '.join(interrupted_hosts[:_MOST_UNREAD])} to end its job",)
            if interrupted_hosts
            else ()
        )
        died = Watch("died", round(since_s, 1), (first.rank,), tuple(victims), hosts=self.hosts)
        self._decided(replace(died, remarks=remarks))

    def _ends(self) -> list[RankEnd]:
        return [end for node in self._nodes.values() if node.beat is not None for end in node.beat.ended]

    def _note_silent(self, now: float) -> None:
        silent = {
            node.beat.host: now - node.heard_s
            for node in self._nodes.values()
            if node.beat is not None and not node.beat.left and self._is_silent(node, now)
        }
        hosts = frozenset(silent)
        if hosts - self._silent and not self._ends():
            self._decided(
                Watch("silent", round(max(silent.values()), 1), silent=tuple(sorted(hosts)), hosts=self.hosts)
            )
        if self._silent and not hosts and self._decision == "silent":
            back = ", ".join(sorted(self._silent))
            self._decided(Watch("ok", remarks=(f"{back} is heard again",), hosts=self.hosts))
        self._silent = hosts

    def _call_unheard(self, now: float) -> None:
        """Call the nodes that are late, by datagrams: one that hears them knows whose packets get lost."""
        late_s = _CALLED_AFTER * self._plan.look_s
        late = [
            node.beat
            for node in self._nodes.values()
            if node.beat is not None
            and node.beat.port
            and not node.beat.left
            and late_s < now - node.heard_s < WATCH_CALLED_S
        ]
        for beat in late[:_MOST_CALLED]:
            call(beat.addresses, beat.port, beat.watcher)

    def _note_standing(self) -> None:
        beats = [node.beat for node in self._nodes.values() if node.beat is not None and not node.beat.left]
        standing = [rank for beat in beats for rank in beat.standing]
        found = frozenset((rank.host, rank.pid) for rank in standing)
        if found - self._standing and len(standing) < sum(beat.ranks for beat in beats):
            self._decided(Watch("stopped", 0.0, tuple(standing), hosts=self.hosts))
        if self._standing and not found and self._decision == "stopped":
            self._decided(Watch("ok", remarks=("no rank is stopped any more",), hosts=self.hosts))
        self._standing = found

    def _follow(self, now: float, has_ranks: bool) -> None:
        living = [
            node.beat
            for node in self._nodes.values()
            if node.beat is not None and not node.beat.left and not self._is_silent(node, now)
        ]
        if self._asked_s is not None:
            self._pace = replace(self._pace, look=Look(now, ()))
            self._decide_after_answers(now)
            return
        if now - self._pace.look.at_s > _BEATS_MISSED * max(self._plan.look_s, WATCH_SETTLE_S):
            self._pace = rested(self._pace, Look(now, ()))
            return
        if now - self._pace.look.at_s < self._plan.look_s / 2 or not has_ranks:
            return
        before = self._pace
        studying = any(beat.studying for beat in living)
        signs = [Signs(beat.moves_bytes, beat.wakes) for beat in living if beat.ranks and not beat.studying]
        self._pace = next_job_pace(before, now, () if studying else signs)
        if self._pace.advanced_at_s == now:
            self._study_next_s = 0.0
            if self._decision in ("hang", "quiet"):
                paused_s = now - before.advanced_at_s
                remark = f"the job advances again after {paused_s:.0f} s"
                self._decided(Watch("ok", remarks=(remark,), hosts=self.hosts))
            return
        patience = patience_s(self._pace, self._plan.patience_s)
        if still_s(self._pace) >= max(patience, self._study_next_s):
            self._study_next_s = still_s(self._pace) + patience
            self.study_now()

    def _decide_after_answers(self, now: float) -> None:
        """Decide once all nodes have answered; without those that take too long or are silent."""
        assert self._asked_s is not None  # noqa: S101 (the caller looked)
        waited_s = now - self._asked_s
        present = [node for node in self._nodes.values() if node.beat is not None and not node.beat.left]
        missing = [node.beat for node in present if node.study is None and node.beat is not None]
        silent = {node.beat.host for node in present if node.beat is not None and self._is_silent(node, now)}
        heard = [beat for beat in missing if beat.host not in silent]
        late_s = self._plan.apart_s + WATCH_ANSWER_S + self._plan.look_s
        if any(beat.studying for beat in heard):
            late_s = WATCH_STUDY_S  # a node of many ranks, or one whose py-spy is slow, says that it reads
        if heard and waited_s < min(WATCH_STUDY_S, late_s):
            return
        studies = [node.study for node in present if node.study is not None]
        silent &= {beat.host for beat in missing}
        unread = sorted({beat.host for beat in heard})
        self._asked_s = None
        for node in self._nodes.values():
            node.study = None
        if not studies:
            return
        host_of = self._host_of()
        studies = [replace(study, blocked=named(study.blocked, host_of)) for study in studies]
        watch = decide_job(JobStudy(tuple(studies), tuple(sorted(silent))))
        remarks = [f"no stacks came from {host} within {waited_s:.0f} s" for host in unread[:_MOST_UNREAD]]
        since_s = round(still_s(self._pace), 1)
        self._decided(replace(watch, since_s=since_s, remarks=(*watch.remarks, *remarks)))

    def _is_silent(self, node: _Node, now: float) -> bool:
        return now - node.heard_s > self._plan.silent_s

    def _host_of(self) -> Mapping[str, str]:
        beats = (node.beat for node in self._nodes.values() if node.beat is not None)
        return {address: beat.host for beat in beats for address in beat.addresses}

    @property
    def _decision(self) -> str:
        return self._holds.decision

    def _decided(self, watch: Watch) -> None:
        known = [
            (watch_or_hold.decision, watch_or_hold.culprits, watch_or_hold.silent)
            for watch_or_hold in (self._holds, self.order.watch or _OK)
        ]
        self._holds = after_news(self._holds, watch)
        if (watch.decision, watch.culprits, watch.silent) not in known:
            self._broadcast(replace(self.order, decided=self.order.decided + 1, watch=watch))

    def _broadcast(self, order: WatchOrder) -> None:
        self.order = replace(order, number=order.number + 1)
        watch = None if order.watch is None else shortened(order.watch)
        self._store.set(keys.WATCH_ORDER, encode(replace(self.order, watch=watch)))
