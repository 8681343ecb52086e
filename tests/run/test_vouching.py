"""A command starts on a verdict only where node 0 itself confirms it, and judged what this node sent."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from ncclcheck.exchange.join.verdict import GivenVerdict, VerdictAsker, VerdictServer
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.base import Store
from ncclcheck.exchange.store.recording import RecordingStore, digest_of, judged_messages
from ncclcheck.run.context import Context
from ncclcheck.run.state import RunState
from ncclcheck.run.steps.base import Vouch
from ncclcheck.run.steps.finish import Finish
from ncclcheck.run.vouching import belongs_to_verdict, vouch_of
from tests.bench.nodes.benches import context
from tests.fact_builders import master_path

NONCE = "ab" * 16
PASS = Finish(0, ("all checks passed",))


@pytest.fixture
def verdicts() -> Iterator[VerdictServer]:
    found = VerdictServer(NONCE)
    yield found
    found.close()


@pytest.fixture
def own(store: Store, verdicts: VerdictServer) -> RecordingStore:
    """The store of a node that sent its facts and an answer."""
    found = RecordingStore(store)
    found.set(keys.VERDICT_PORT, str(verdicts.port).encode())
    found.set_document(keys.facts(2), b"facts")
    found.set_document(keys.answer(0, 2), b"probes")
    found.set_document(keys.announced(2), b"listeners")
    return found


def starting() -> Context:
    return replace(context(), options=replace(context().options, starts=True))


def vouching(own: RecordingStore, state: RunState) -> Vouch:
    way = replace(master_path(1, 2), name="127.0.0.1")
    return vouch_of(starting(), way, VerdictAsker(own, NONCE, 2), state)


def test_the_verdict_of_node_0_on_what_this_node_sent_is_believed(
    own: RecordingStore, verdicts: VerdictServer
) -> None:
    seen = RunState()
    verdicts.give(GivenVerdict(0, "digest", judged_messages(own.written)))
    assert vouching(own, seen)(PASS) == ""
    assert seen.report_digest == "digest"


def test_a_verdict_that_node_0_has_not_given_is_not(own: RecordingStore, verdicts: VerdictServer) -> None:
    assert "has not given this verdict" in vouching(own, RunState())(PASS)
    verdicts.give(GivenVerdict(1, "", judged_messages(own.written)))
    assert "has not given this verdict" in vouching(own, RunState())(PASS)


@pytest.mark.parametrize("key", [keys.facts(2), keys.answer(0, 2)])
def test_a_verdict_on_forged_facts_or_probes_is_not(
    own: RecordingStore, verdicts: VerdictServer, key: str
) -> None:
    verdicts.give(GivenVerdict(0, "", {**judged_messages(own.written), key: digest_of(b"forged")}))
    assert "judged something else" in vouching(own, RunState())(PASS)


@pytest.mark.parametrize("port", [b"", b"22", b"no port", b"9" * 400, b"70000"])
def test_without_node_0_s_port_it_is_not(own: RecordingStore, port: bytes) -> None:
    own.set(keys.VERDICT_PORT, port)
    assert vouching(own, RunState())(PASS) != ""


def test_what_starts_nothing_is_believed_unasked(own: RecordingStore) -> None:
    assert vouching(own, RunState())(Finish(1, ("a fault",))) == ""
    asker = VerdictAsker(own, NONCE, 2)
    assert vouch_of(context(), master_path(1, 2), asker, RunState())(PASS) == ""


def test_a_report_belongs_to_the_verdict_that_is_believed() -> None:
    seen = RunState()
    seen.verdict = Finish(1, ())
    assert not belongs_to_verdict(seen, b"report", 0)
    assert belongs_to_verdict(seen, b"report", 1)
    seen.report_digest = digest_of(b"report")
    assert belongs_to_verdict(seen, b"report", 1)
    assert not belongs_to_verdict(seen, b"forged", 1)
