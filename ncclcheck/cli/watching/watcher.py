"""The watcher of one node's ranks: looks, notices, has the job studied, and says what it found."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from msgspec.structs import replace

from ncclcheck.cli.watching.evidence import dump_recorders, keep, keep_files
from ncclcheck.cli.watching.further_signs import FurtherSigns
from ncclcheck.cli.watching.peers import Peers
from ncclcheck.cli.watching.status import Status, write_status
from ncclcheck.cli.watching.study import Answered, Question, read_connections, study
from ncclcheck.cli.watching.watch_plan import WatchPlan
from ncclcheck.facts.bounded_call import Started, start, within
from ncclcheck.facts.job.deaths import Death, DeathWatch
from ncclcheck.facts.job.rank_processes import RankProcess, find_ranks, look_at
from ncclcheck.facts.network.interfaces import addresses_now
from ncclcheck.facts.network.names import host_name
from ncclcheck.facts.text_files import readable
from ncclcheck.measure.watching.decision import GRAVITY, after_news, stands, with_victims
from ncclcheck.measure.watching.decision_text import sentence_on
from ncclcheck.measure.watching.job_progress import (
    Pace,
    Signs,
    first_pace,
    next_pace,
    overlooked,
    patience_s,
    rested,
    signs,
    still_s,
)
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.job.together import Beat, NodeStudy, RankEnd, WatchOrder
from ncclcheck.model.job.watched import Connection, Look, Watch, WatchedRank
from ncclcheck.timeouts import DUMP_S, WATCH_KEEP_S, WATCH_READ_S, WATCH_STUDY_S

_SLEPT = 4  # looks that did not happen: the machine slept, or this process was stopped


class Watcher:
    """Watches until `close`. `tell` gets each decision that is news; `worst` is the gravest one that still holds."""

    def __init__(
        self, plan: WatchPlan, tell: Callable[[Watch, bool], None], peers: Peers | None = None
    ) -> None:
        self.plan = plan
        self.worst = Watch("ok")
        self.ranks: tuple[RankProcess, ...] = ()
        self.seen: Callable[[int, int | None], None] = lambda _pid, _rank: None  # each rank that is new
        self._tell = tell
        self._host = host_name()
        self._deaths = DeathWatch()
        self._deaths_told = self._deaths_seen = self._ends_posted = 0
        self._pace: Pace | None = None
        self._study: Started[Answered] | None = None
        self._study_until = 0.0
        self._writing: Started[None] | None = None
        self._studies = 0
        self._study_next_s = 0.0  # of standing still
        self._told_standing: frozenset[int] = frozenset()
        self._standing: tuple[WatchedRank, ...] = ()
        self._peers = peers
        self._beats = 0
        self._signs = Signs(moves_bytes=False, wakes=False)
        self._further = FurtherSigns(plan.ras, plan.patience_s)
        self._works = False  # by these further signs
        self._ordered = self._answered = 0  # the number of node 0's order to study
        self._answer: NodeStudy | None = None
        self._heard = 0  # node 0's decisions
        self._own = Watch("ok")  # what this node alone found last while node 0 decides: its files and remarks
        self._is_asked = False  # by the user, for stacks while node 0 decides
        self._addresses = tuple(sorted(addresses_now()))[:64]
        self._connected: tuple[Connection, ...] = ()
        self._advanced_s = time.monotonic()  # when anything moved here last
        self.interrupted = False  # the user ends the job: what ends now is no finding

    def look(self) -> None:
        """Look once at all ranks. Takes milliseconds, or WATCH_READ_S where /proc hangs."""
        ranks = within(WATCH_READ_S, find_ranks, self.plan.root)
        if isinstance(ranks, Missing):
            return
        for rank in ranks:
            is_command = rank.rank is None and self.plan.is_child  # whose output is ours
            if rank not in self.ranks and not is_command:
                within(WATCH_READ_S, self.seen, rank.pid, rank.rank)
        self.ranks = ranks or self.ranks
        self._deaths.follow(
            tuple(rank for rank in ranks if rank.pid != self.plan.root or not self.plan.is_child)
        )
        seen = within(WATCH_READ_S, look_at, ranks, time.monotonic())
        self._tell_deaths()
        if isinstance(seen, Missing) or not seen.ranks:
            return
        before = self._pace
        can_tell = before is not None and self._study is None
        self._signs = signs(before, seen) if before is not None and can_tell else Signs(False, False)
        self._note_further(can_tell=can_tell)
        self._note_stand(can_tell=can_tell)
        self._pace = self._next_pace(seen)
        if before is not None:
            self._tell_standing(before.look, seen)
        self._follow_study()
        self._exchange()
        self._leave_status()

    def is_urgent(self) -> bool:
        """Return whether there is a reason to look before the time: a rank ended, here or elsewhere."""
        is_news = len(self._deaths.deaths) > self._deaths_seen
        self._deaths_seen = len(self._deaths.deaths)
        return is_news or (self._peers is not None and self._peers.is_urgent())

    def look_closely(self) -> None:
        """Study the ranks now, whatever they do; on node 0 those of all nodes."""
        if self._peers is not None and self._peers.lead is not None and self._is_led:
            self._peers.lead.study_now()
            self._exchange()
        elif self.ranks:
            self._is_asked = self._is_led
            if self._study is None:
                self._begin_study()

    @property
    def agrees_to_stop(self) -> bool:
        """Return whether the job may be ended for a hang on node 0's word.

        That is so where node 0 proved that it has the user's key; else only if the ranks here stand still, too.
        """
        if self._peers is None or self._peers.lead is not None or self._peers.has_key:
            return True
        return self._stands_for_s > self.plan.patience_s / 2

    @property
    def _stands_for_s(self) -> float:
        return time.monotonic() - self._advanced_s

    def close(self, status: int | None = None) -> None:
        """Wait for the last deaths to be seen, and tell of them. `status`: how our child ended, as of wait(2)."""
        self._deaths.close()
        self._further.close()
        if self.plan.is_child:
            self._deaths.deaths += [
                Death(rank.rank, rank.pid, time.monotonic(), status)
                for rank in self.ranks
                if rank.pid == self.plan.root and rank.rank is not None
            ]
        if self._peers is not None:
            self._exchange(left=True)
            self._peers.close(self._knows_first_failure)
            self._peers = None  # what node 0 has not reported by now is reported here
        self._tell_deaths()

    def _note_further(self, *, can_tell: bool) -> None:
        """Ask NCCL and the GPUs where nothing else moved; what they show counts as bytes that moved."""
        self._works = False
        if self._signs.moves_bytes or (self._signs.wakes and not self._is_led):
            self._further.rest()
        elif can_tell:
            self._works = self._further.seen(self.ranks, asks_ras=self._asks_ras)
            self._signs = replace(self._signs, moves_bytes=self._works)

    @property
    def _asks_ras(self) -> bool:
        """Return whether to ask NCCL's RAS here: it reports on all nodes, so only one watcher of the job asks."""
        return self._peers is None or self._peers.lead is not None or not self._peers.is_met

    def _note_stand(self, *, can_tell: bool) -> None:
        """Keep the connections as they are soon after nothing moves any more: what they count later is compared."""
        if self._signs.moves_bytes or self._signs.wakes:
            self._advanced_s = time.monotonic()
            self._connected = ()
        elif can_tell and not self._connected and self._stands_for_s > self.plan.patience_s / 4:
            self._connected = read_connections(self.ranks)

    def _next_pace(self, seen: Look) -> Pace:
        pace = self._pace
        if pace is None:
            return first_pace(seen)
        if seen.at_s - pace.look.at_s > _SLEPT * max(self.plan.look_s, 1.0):
            return rested(pace, seen)
        if self._study is not None:
            return overlooked(pace, seen)
        after = next_pace(pace, seen, works=self._works)
        if after.advanced_at_s == seen.at_s:
            self._study_next_s = 0.0
            if self.worst.decision in ("hang", "quiet", "stopped") and not self._is_led:
                self._recovered(seen.at_s - pace.advanced_at_s)
        return after

    def _recovered(self, paused_s: float) -> None:
        self.worst = Watch("ok", remarks=(f"the job advances again after {paused_s:.0f} s",))
        self._told_standing = frozenset()
        self._tell(self.worst, True)

    def _leave_status(self) -> None:
        if self._writing is not None and isinstance(self._writing.result(0.0), Missing):
            return  # a disk that hangs
        status = Status(
            host=self._host,
            pid=os.getpid(),
            at_s=time.time(),
            look_s=self.plan.look_s,
            ranks=tuple(rank.rank for rank in self.ranks if rank.rank is not None),
            still_s=round(self._stands_for_s, 1),
            decision=self.worst.decision,
            sentence="" if self.worst.decision == "ok" else sentence_on(self.worst),
            led=self._is_led,
        )
        self._writing = start(write_status, self.plan.folder, status)

    def _follow_study(self) -> None:
        pace = self._pace
        if pace is None:
            return
        if self._study is None:
            patience = patience_s(pace, self.plan.patience_s)
            if not self._is_led and still_s(pace) >= max(patience, self._study_next_s):
                self._study_next_s = still_s(pace) + patience
                self._begin_study()
            return
        answer = self._study.result(0.0)
        if isinstance(answer, Missing):
            if answer.missing == "timeout" and time.monotonic() < self._study_until:
                return
            self._decided(Watch("quiet", still_s(pace), remarks=(f"the ranks could not be read: {answer}",)))
        else:
            self._keep(answer)
        self._study = None

    def _begin_study(self) -> None:
        pace = self._pace
        question = Question(
            self._host,
            self.ranks,
            self.plan.apart_s,
            still_s(pace) if pace else 0.0,
            self._ended_before(),
            self._connected,
            self.plan.ras if self._asks_ras else "",
            "" if self._peers is None else self._peers.unheard_by,
        )
        self._studies += 1
        self._study_until = time.monotonic() + WATCH_STUDY_S
        self._study = start(study, question)

    def _keep(self, answer: Answered) -> None:
        watch, plan = answer.watch, self.plan
        self._answer, self._answered = answer.study, self._ordered
        evidence = within(WATCH_KEEP_S, keep, plan.folder, self._studies, answer.ranks, answer.documents)
        files, remarks = self._written(evidence)
        told_files = within(WATCH_KEEP_S, keep_files, plan.folder, self._studies, answer.files)
        files = (*files, *self._written(told_files)[0])
        if watch.decision == "hang" and plan.dumps and not self._is_led:
            more, complaints = self._dumped(answer.ranks)
            files, remarks = (*files, *more), (*remarks, *complaints)
        self._decided(replace(watch, evidence=files, remarks=(*watch.remarks, *remarks)))

    def _dumped(self, ranks: tuple[RankProcess, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        dumps = within(WATCH_KEEP_S + DUMP_S, dump_recorders, self.plan.pipe_prefix, ranks, self.plan.folder)
        return self._written(dumps)

    def _written(self, files: Fact[list[str]]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the files of the evidence, and what to say where it could not be written: a full or dead disk."""
        if isinstance(files, Missing):
            return (), (f"evidence could not be written to {readable(str(self.plan.folder))}: {files}",)
        return tuple(files), ()

    def _tell_standing(self, before: Look, after: Look) -> None:
        self._standing = standing = stands(before, after, self._host)
        pids = frozenset(rank.pid for rank in standing)
        if standing and not pids <= self._told_standing and len(standing) < len(after.ranks):
            self._studies += 1
            evidence = within(WATCH_KEEP_S, keep, self.plan.folder, self._studies, self.ranks, {})
            files, remarks = self._written(evidence)
            others = tuple(
                sorted(rank.rank for rank in after.ranks if rank.pid not in pids and rank.rank is not None)
            )
            self._decided(Watch("stopped", 0.0, standing, others, files, remarks=remarks))
        self._told_standing = pids

    def _tell_deaths(self) -> None:
        deaths = self._deaths.deaths
        failed = [death for death in deaths[self._deaths_told :] if death.is_failure]
        if not failed or self.interrupted or self._is_led:
            return
        self._deaths_told = len(deaths)
        if self.worst.decision == "died":  # the first failure is reported
            self.worst = with_victims(self.worst, [self._ended(death) for death in failed])
            return
        first, *later = failed
        self._decided(
            Watch(
                "died",
                round(time.monotonic() - first.at_s, 1),
                (self._ended(first),),
                tuple(sorted(death.rank for death in later if death.rank is not None)),
            )
        )

    def _ended_before(self) -> tuple[WatchedRank, ...]:
        """Return the ranks of the present job that ended with exit code 0, while others are still there."""
        living = {rank.rank for rank in self.ranks}
        gone = (death for death in self._deaths.deaths if death.rank is not None)
        return tuple(self._ended(death) for death in gone if death.rank not in living)

    def _ended(self, death: Death) -> WatchedRank:
        return WatchedRank(death.rank, self._host, death.pid, reason=death.words)

    @property
    def _is_led(self) -> bool:
        """Return whether node 0 decides, over the ranks of all nodes."""
        return self._peers is not None and self._peers.is_met

    def _exchange(self, *, left: bool = False) -> None:
        """Tell node 0 how the ranks of this node are, and do what it asks."""
        peers = self._peers
        if peers is None:
            return
        self._beats += 1
        ended = () if self.interrupted else tuple(self._end_of(death) for death in self._failed())
        beat = Beat(
            host=self._host,
            watcher=peers.watcher,
            number=self._beats,
            sent_s=time.time(),
            ranks=len(self.ranks),
            world_size=max((rank.world_size for rank in self.ranks), default=0),
            moves_bytes=self._signs.moves_bytes,
            wakes=self._signs.wakes,
            studying=self._study is not None,
            addresses=self._addresses,
            standing=self._standing,
            ended=ended,
            studied=self._answered,
            left=left,
            port=peers.listener.port,
            interrupted=self.interrupted,
        )
        is_urgent = left or self.interrupted or len(ended) > self._ends_posted
        peers.post(beat, self._answer, urgent=is_urgent)
        self._ends_posted = len(ended)
        self._obey(peers.order)

    def _obey(self, order: WatchOrder | None) -> None:
        if order is None or self._peers is None:
            return
        if order.study > self._ordered and self._study is None and self.ranks:
            self._ordered = order.study
            self._begin_study()
        if order.decided > self._heard and order.watch is not None:
            self._heard = order.decided
            watch = self._with_own(order.watch)
            self.worst = after_news(self.worst, watch)
            is_ours = any(rank.host == self._host for rank in watch.culprits)
            self._tell(watch, is_ours or self._peers.lead is not None)

    def _with_own(self, watch: Watch) -> Watch:
        """Return node 0's decision with what this node kept and could not keep."""
        if watch.decision == "ok":
            self._own = watch
            return watch
        files, remarks = self._own.evidence, self._own.remarks
        if watch.decision == "hang" and self.plan.dumps:
            dumps, complaints = self._dumped(self.ranks)
            files, remarks = (*files, *dumps), (*remarks, *complaints)
        remarks = tuple(dict.fromkeys((*watch.remarks, *remarks)))
        return replace(watch, evidence=tuple(dict.fromkeys(files)), remarks=remarks)

    def _knows_first_failure(self) -> bool:
        """Return whether there is nothing to wait for: no rank of this node failed, or node 0 said who was first."""
        if self._peers is None or not self._is_led or self.interrupted or not self._failed():
            return True
        self._exchange(left=True)
        return self.worst.decision == "died"

    def _failed(self) -> list[Death]:
        return [death for death in self._deaths.deaths if death.is_failure]

    def _end_of(self, death: Death) -> RankEnd:
        at_s = time.time() - (time.monotonic() - death.at_s)
        return RankEnd(self._ended(death), at_s, by_signal=death.by_fatal_signal)

    def _decided(self, watch: Watch) -> None:
        if self._is_led:
            self._own = watch
            if self._is_asked:
                remark = f"the stacks of this node's ranks are in {self.plan.folder}; node 0 decides over all ranks"
                self._tell(Watch("ok", remarks=(remark,) if watch.evidence else watch.remarks), True)
            self._is_asked = False
            return
        is_news = watch.decision != self.worst.decision or watch.culprits != self.worst.culprits
        if watch.decision == "ok" or not is_news:
            return
        if GRAVITY.index(watch.decision) >= GRAVITY.index(self.worst.decision):
            self.worst = watch
        self._tell(watch, True)
