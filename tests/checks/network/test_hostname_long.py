"""NC221 hostname-long."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.fact import Missing
from ncclcheck.model.snapshot import Snapshot
from tests.builders import cluster, everywhere, node, with_environment, with_facts, without
from tests.checks.running import finding, is_silent, run
from tests.fact_builders import some

NO_GPU = Missing("absent", "no NVIDIA driver is installed")


def named(length: int, snapshot: Snapshot | None = None) -> Snapshot:
    known = snapshot or cluster(3)
    names = some(node(known, "node02").facts.names)
    return with_facts(known, "node02", names=replace(names, hostname="n" * length))


def test_63_characters_are_fine() -> None:
    assert is_silent("hostname-long", named(63))


def test_64_are_a_warning_with_gpus_and_an_error_where_gloo_carries_the_job() -> None:
    assert (finding("hostname-long", named(64)).severity, finding("hostname-long", named(64)).hosts) == (
        "warning",
        ("node02",),
    )
    assert (
        finding("hostname-long", named(64, everywhere(cluster(3), gpus=NO_GPU, torch_gpus=NO_GPU))).severity
        == "error"
    )


def test_with_the_interface_named_gloo_does_not_ask() -> None:
    told = with_environment(named(64), "node02", GLOO_SOCKET_IFNAME="eth0")
    assert finding("hostname-long", told).severity == "info"


def test_one_node_does_not_need_it_and_unread_names_are_unknown() -> None:
    assert run("hostname-long", cluster(1)).outcome == "not_applicable"
    assert run("hostname-long", without(cluster(3), "node02", "names")).outcome == "unknown"
