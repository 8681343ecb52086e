"""NC112 message-refused."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.authentication import Authentication, Foreign
from ncclcheck.model.snapshot import Refused
from tests.builders import cluster, seen_alone
from tests.checks.running import finding, is_silent, run


def test_every_message_was_understood() -> None:
    assert is_silent("message-refused", cluster(4))


def test_the_sender_of_garbage_is_named_once() -> None:
    messages = (
        Refused("node03", "facts", "invalid JSON"),
        Refused("node03", "probes", "unknown schema version 9"),
    )
    found = finding("message-refused", replace(cluster(4), refused=messages))
    assert (found.severity, found.hosts) == ("error", ("node03",))
    assert "invalid JSON" in found.summary
    assert found.fixes[0].commands == ("pip install ncclcheck==0.1.0",)


def test_an_order_that_nodes_refused_accuses_none_of_them() -> None:
    reason = "bench: 'LD_PRELOAD' is no setting that a message may make"
    orders = tuple(Refused(host, "order step 3", reason) for host in ("node02", "node03"))
    found = finding("message-refused", replace(cluster(4), refused=orders))
    assert found.summary.startswith(
        "node02 and node03 rejected an order that node 0 did not send (step 3): bench: "
    )
    assert "LD_PRELOAD" in found.summary
    assert "another program writes" in found.summary


def test_a_node_that_met_nobody_cannot_tell() -> None:
    assert run("message-refused", seen_alone(cluster(4), "node02")).outcome == "unknown"


def test_one_node_sends_no_messages() -> None:
    assert run("message-refused", cluster(1)).outcome == "not_applicable"


def test_messages_without_the_key_are_counted_by_origin_and_accuse_nobody() -> None:
    foreign = tuple(Foreign(f"10.0.0.{host}", "no-key", host) for host in range(1, 6))
    found = finding(
        "message-refused", replace(cluster(4), authentication=Authentication("munge", foreign, 7))
    )
    assert (found.severity, found.hosts) == ("info", ())
    assert found.summary.startswith(
        "22 messages without the key of this run were dropped, from 10.0.0.1, 10.0.0.2, 10.0.0.3 and 2 more addresses"
    )
