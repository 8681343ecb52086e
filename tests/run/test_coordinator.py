"""Where node 0 loses its own store the run is over, and no node is silent because nothing came any more."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.memory import MemoryBackend
from ncclcheck.exchange.store.opening import within_process
from ncclcheck.model.fact import Missing
from ncclcheck.model.snapshot import Silent, Snapshot
from ncclcheck.run import coordinator as lead_module
from ncclcheck.run.coordinator import lead
from ncclcheck.run.session import Session, with_silent
from ncclcheck.run.steps.base import Step
from ncclcheck.run.steps.recount import Recounted
from tests.bench.nodes.benches import session
from tests.builders import cluster
from tests.checks.running import run
from tests.report.reports import report

HUNG = Missing("timeout", "the store did not answer within 8 s")


def losing(session: Session) -> Snapshot:
    """A step in which the store is lost, and then nobody answers."""
    session.store.give_up(HUNG)  # type: ignore[attr-defined]
    return with_silent(session.snapshot, [Silent("node02", 1, "end", 6.0)])


def never(_: Session) -> Snapshot:
    raise AssertionError("a step after the run was over")


def step(name: str, lead: object, **how: object) -> Step[None, None]:
    return Step(name, 1.0, applies=lambda _: True, lead=lead, **how)  # type: ignore[arg-type]


@pytest.mark.parametrize("answer", [None, Recounted])
def test_a_lost_store_ends_the_run_and_accuses_nobody(
    monkeypatch: pytest.MonkeyPatch, answer: type | None
) -> None:
    steps = (step("first", losing, answer=answer, doing="the tests of pairs"), step("next", never))
    monkeypatch.setattr(lead_module, "STEPS", steps)
    led = session(within_process(MemoryBackend(), 0), cluster(2))
    lead(led)
    assert led.snapshot.silent == ()
    assert "during the tests of pairs: the store did not answer within 8 s" in led.snapshot.store_lost


@pytest.mark.parametrize("erases", [True, False])
def test_who_seems_silent_is_so_only_while_nobody_erases_what_node_0_wrote(
    monkeypatch: pytest.MonkeyPatch, erases: bool
) -> None:
    def silencing(led: Session) -> Snapshot:
        if erases:
            led.store.set(keys.SERVING, b"of a stranger")
        return with_silent(led.snapshot, [Silent("node02", 1, "end", 6.0)])

    monkeypatch.setattr(lead_module, "STEPS", (step("first", silencing, doing="the benchmark"),))
    led = session(within_process(MemoryBackend(), 0), cluster(2))
    led.store.set(keys.SERVING, b"nonce")
    lead(led)
    assert [silent.host for silent in led.snapshot.silent] == ([] if erases else ["node02"])
    assert ("another program writes into it" in led.snapshot.store_lost) is erases


def test_a_run_whose_store_was_lost_is_no_pass() -> None:
    lost = replace(cluster(2), store_lost="node 0 lost the store of the run during the benchmark: a reason")
    assert run("node-silent", lost).outcome == "unknown"
    verdict = report(snapshot=lost).verdict
    assert (verdict.exit_code, verdict.reasons) == (3, (lost.store_lost,))
