"""preflight where nodes leave half way, names have dead addresses, and strangers write into the store."""

from __future__ import annotations

import signal
from collections.abc import Callable

import pytest

from tests.further import mostly_further
from tests.lab import faults
from tests.lab.launched import PORT, flags, job_environment, run, start, told
from tests.lab.namespaces import ETC
from tests.lab.nodes import PYTHON, Lab, Node
from tests.lab.test_preflight import LONG_BEFORE_S, PATIENT

pytestmark = [pytest.mark.lab, pytest.mark.slow]
LabOf = Callable[..., Lab]


def errors(report: dict[str, object]) -> list[tuple[str, list[str]]]:
    """(slug, hosts) of every error."""
    found: list[dict[str, object]] = report["findings"]  # type: ignore[assignment]
    return [(one["slug"], one["hosts"]) for one in found if one["severity"] == "error"]  # type: ignore[misc]


@pytest.mark.parametrize(
    "how",
    [
        pytest.param(signal.SIGKILL, marks=pytest.mark.further),
        signal.SIGSTOP,
        pytest.param(signal.SIGINT, marks=pytest.mark.further),
    ],
)
def test_a_node_that_leaves_after_its_facts_is_silent_and_no_firewall_is_blamed(
    lab: LabOf, how: signal.Signals
) -> None:
    three = lab(3)
    running = start(three, "preflight", nodes=three.nodes[:2])
    running["node1"].wait_for("waiting for node rank 2", 90)
    running["node2"].wait_for("joined node 0", 90)
    running["node2"].signal(how, group=how is not signal.SIGINT)
    running |= start(three, "preflight", nodes=three.nodes[2:])
    left = running.pop("node2")
    outcomes = told(three, running)
    left.signal(signal.SIGKILL, group=True)
    for outcome in outcomes.values():
        assert outcome.code == 3, str(outcome.finished)
        assert outcome.finished.seconds <= 45
        assert outcome.report is not None
        assert errors(outcome.report) == []
        assert outcome.finding("node-silent")["hosts"] == ["node2"]
        assert outcome.outcome("peer-refused") == "unknown"
        assert outcome.outcome("address-duplicate") == "unknown"
        assert [node["status"] for node in outcome.report["nodes"]] == ["reported", "silent", "reported"]
    assert three.leftovers() == ()


def test_ctrl_c_on_node_0_ends_those_who_have_joined_with_the_same_verdict(lab: LabOf) -> None:
    three = lab(3)
    running = start(three, "preflight", nodes=three.nodes[:2])
    running["node1"].wait_for("waiting for node rank 2", 90)
    running["node2"].wait_for("joined node 0", 90)
    running["node1"].signal(signal.SIGINT)
    outcomes = told(three, running, 15)
    assert [outcome.code for outcome in outcomes.values()] == [130, 130]
    assert not outcomes["node2"].finished.stdout
    assert three.leftovers() == ()


def add_addresses(node: Node, name: str, *addresses: str) -> None:
    """`name` has these addresses on `node`."""
    with (ETC / node.namespace / "hosts").open("a") as hosts:
        hosts.writelines(f"{address} {name}\n" for address in addresses)


def test_a_silent_first_address_of_the_master_holds_every_client_and_is_named(lab: LabOf) -> None:
    """torch tries the addresses in order and waits at one that does not answer, so the job would hang as well."""
    two = lab(2)
    two.switch.ip("addr add 10.78.0.3/24 dev br-eth0")
    faults.drop(two.switch, PORT)
    for node in two.nodes:
        # the C library puts the address first that is nearer to the caller's own: 10.78.0.3 for node2
        add_addresses(node, "master", "10.78.0.3", two["node1"].address)
    outcomes = run(two, "preflight", *PATIENT, master="master")
    assert outcomes["node2"].code == outcomes["node1"].code == 1, str(outcomes["node1"].finished)
    finding = outcomes["node2"].finding("master-filtered")
    assert finding["hosts"] == ["node2"]
    assert "10.78.0.3" in finding["summary"]
    assert max(outcome.finished.seconds for outcome in outcomes.values()) <= LONG_BEFORE_S


def test_the_same_node_started_twice_is_a_clash_of_ranks_and_of_nothing_else(lab: LabOf) -> None:
    two = lab(2)
    running = start(two, "preflight")
    words = [PYTHON, "-m", "ncclcheck", "preflight", *flags(two, two["node2"])]
    again = two["node2"].start(words, job_environment())
    outcomes = told(two, running)
    again.wait(30)
    for outcome in outcomes.values():
        assert outcome.report is not None
        # the second may come when the first two are through already: then it is nobody of this run
        assert errors(outcome.report) in ([], [("rank-duplicate", ["node2"])])


# Writes what argv[1] says over the run's keys, again and again, as soon as the store is there.
INTRUDER = """
import sys, time
from ncclcheck.exchange.store.opening import join
from ncclcheck.model.fact import Missing
from ncclcheck.exchange.deadline import Deadline
key, value = sys.argv[1], sys.argv[2].encode()
print("ready", flush=True)
store = None
while store is None or isinstance(store, Missing):
    store = join("10.78.0.1", 29500, "ncclcheck/1//", Deadline(0.7))
print("in", flush=True)
while store.lost is None:
    if key == "tickets" or key == "none":
        store.set(key, value)
        break
    store.set_document(key, value)
    time.sleep(0.01)
print("wrote", flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize(
    ("key", "value", "codes"),
    mostly_further(
        [
            ("tickets", "999999999999", {3}),
            ("tickets", "no number", {3}),
            ("tickets", "-7", {3}),
            ("hello/2", "garbage", {1, 3}),
            ("facts/2", '{"schema_version":"1","facts":[]}', {1}),
            ("facts/2", '{"schema_version":"9"}', {1}),
            ("step/0", "garbage", {0, 1, 3}),
        ],
        2,
    ),
)
def test_a_stranger_who_writes_into_the_store_gets_no_crash_and_no_pass(
    lab: LabOf, key: str, value: str, codes: set[int]
) -> None:
    two = lab(2)
    # who spoils the count of tickets keeps node 0 waiting to the end; for all others there is time to start in
    patience = ("--join-timeout", "8" if key == "tickets" else "60")
    with two["node2"].service([PYTHON, "-c", INTRUDER, key, value]) as intruder:
        intruder.wait_for("ready", 90)
        running = start(two, "preflight", *patience, nodes=two.nodes[:1])
        intruder.wait_for("in", 90)
        running |= start(two, "preflight", *patience, nodes=two.nodes[1:])
        outcomes = told(two, running, 120)
    for outcome in outcomes.values():
        assert not outcome.finished.timed_out
        assert "Traceback" not in outcome.finished.stderr, str(outcome.finished)
        assert outcome.report is not None
    # Where node 0 read what the node itself had written in between, the stranger has changed nothing.
    code, report = outcomes["node1"].code, outcomes["node1"].report
    is_untouched = report is not None and [node["status"] for node in report["nodes"]] == ["reported"] * 2
    assert code in codes or (code == 0 and is_untouched), str(outcomes["node1"].finished)
    assert two.leftovers() == ()
