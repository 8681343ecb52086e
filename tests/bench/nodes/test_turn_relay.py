"""Turns and rounds cross between the run's store and that of the ranks, in both directions, until the set ends."""

from __future__ import annotations

from ncclcheck.bench.nodes.turn_relay import relay_turns
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.memory import MemoryBackend
from ncclcheck.exchange.store.opening import within_process
from ncclcheck.model.fact import Missing


def test_every_turn_goes_over_and_its_round_comes_back() -> None:
    run, ranks = within_process(MemoryBackend(), 0), within_process(MemoryBackend(), 0)
    relay_turns(["as-is", "advised"], run, ranks, Deadline(20))
    for name in ("as-is", "advised"):
        for number in range(3):
            run.set(keys.bench_turn(name, number), b"turn")
            assert ranks.wait(keys.bench_turn(name, number), Deadline(10)) == b"turn"
            ranks.set(keys.bench_round(name, number), b"round")
            assert run.wait(keys.bench_round(name, number), Deadline(10)) == b"round"


def test_a_set_that_was_stopped_gets_no_more() -> None:
    run, ranks = within_process(MemoryBackend(), 0), within_process(MemoryBackend(), 0)
    run.set("as-is/stop", b"1")
    relay_turns(["as-is"], run, ranks, Deadline(20))
    assert isinstance(ranks.wait(keys.bench_turn("as-is", 0), Deadline(0.3)), Missing)
