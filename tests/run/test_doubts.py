"""Where somebody else changes what a run wrote, nobody is accused of what is missing."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.exchange.store.deadline_store import DeadlineStore
from ncclcheck.exchange.store.memory import MemoryBackend
from ncclcheck.exchange.store.recording import RecordingStore
from ncclcheck.model.bench import RankFailure
from ncclcheck.model.fact import Missing
from ncclcheck.model.snapshot import Probe, ProbeKind, ProbeOutcome, Refused, Silent, StoodStill, StoreChanged
from ncclcheck.run.doubts import store_changes, with_own_pause, with_pauses, with_store_changes
from tests.bench_builders import bench_result
from tests.builders import cluster

GONE = (StoreChanged("node01", "serving", "is gone"),)
LOST = RankFailure(2, "node03", "lost", "all_reduce 1M, iteration 5", "no word from its node for 6 s", 6.0)


def test_an_undisturbed_run_is_as_it_was() -> None:
    snapshot = replace(cluster(3), silent=(Silent("node02", 1, "probes", 5.0),))
    assert with_store_changes(snapshot, ()) is snapshot


def test_nothing_that_missing_messages_seem_to_say_is_kept() -> None:
    silent = (
        Silent("node01", 0, "probes", 5.0),
        Silent("node02", 1, "probes", 5.0),
        Silent("node03", 2, "end", 5.0),
    )
    refused = (Refused("node02", "probes", "no JSON"),)
    snapshot = replace(
        cluster(3), silent=silent, refused=refused, bench=replace(bench_result(), failures=(LOST,))
    )
    seen = with_store_changes(snapshot, GONE)
    assert seen.store_changed == GONE
    assert [node.host for node in seen.silent] == ["node02"], "it is not known, so it is not passed either"
    assert seen.refused == ()
    assert not isinstance(seen.bench, Missing)
    assert seen.bench.failures == ()
    assert "another program writes into the store" in seen.bench.unfinished


def test_what_is_absent_stays_absent() -> None:
    seen = with_store_changes(cluster(3), GONE)
    assert (seen.isolation, seen.matrix, seen.bench) == (
        cluster(3).isolation,
        cluster(3).matrix,
        cluster(3).bench,
    )


def test_only_a_store_that_remembers_can_tell() -> None:
    inner = DeadlineStore(MemoryBackend(), 7)
    assert store_changes(inner, "node01") == ()
    store = RecordingStore(inner)
    store.set("serving", b"a")
    assert store_changes(store, "node01") == ()
    inner.set("serving", b"b")
    assert store_changes(store, "node01") == (StoreChanged("node01", "serving", "holds something else"),)


def _probe(kind: ProbeKind, source: str, target: str, outcome: ProbeOutcome = "ok") -> Probe:
    return Probe(kind, source, target, "eth0", "10.0.0.1", 1, outcome)


def test_probes_with_a_node_that_stood_still_are_dropped() -> None:
    sound = (_probe("tcp", "node01", "node02"), _probe("bandwidth", "node02", "node03"))
    spoilt = (_probe("tcp", "node03", "node01", "filtered"), _probe("bandwidth", "node03", "node01"))
    snapshot = replace(cluster(3), probes=(*sound, *spoilt))
    seen = with_pauses(snapshot, StoodStill("node01", 0.0), {"node01": {"reach": 25.0, "measure": 3.0}})
    assert seen.probes == sound
    assert seen.stood_still == (StoodStill("node01", 25.0),)


def test_a_pause_from_which_nothing_came_is_not_told() -> None:
    snapshot = replace(cluster(3), probes=(_probe("tcp", "node01", "node02"),))
    assert with_pauses(snapshot, StoodStill("node01", 25.0), {"node02": {"reach": 25.0}}) is snapshot


def test_node_0_that_stood_still_itself_accuses_nobody_of_silence() -> None:
    died = replace(LOST, rank=1, host="node02", state="died")
    snapshot = replace(
        cluster(3),
        silent=(Silent("node02", 1, "end", 5.0),),
        bench=replace(bench_result(), failures=(LOST, died)),
    )
    seen = with_pauses(snapshot, StoodStill("node01", 15.0), {})
    assert seen.stood_still == (StoodStill("node01", 15.0, is_listener=True),)
    assert not isinstance(seen.bench, Missing)
    assert seen.bench.failures == (died,)
    assert "itself stood still for 15 s" in seen.bench.unfinished


def test_who_lost_node_0_and_stood_still_itself_says_so() -> None:
    assert with_own_pause(cluster(1), "node03", 1.0) is not None
    assert with_own_pause(cluster(1), "node03", 1.0).stood_still == ()
    assert with_own_pause(cluster(1), "node03", 12.0).stood_still[0].is_listener
