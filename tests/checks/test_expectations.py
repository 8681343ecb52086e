"""How a demand is compared with what was seen, and which demands hold for which node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from ncclcheck.checks.expectations import (
    Nothing,
    Seen,
    Value,
    demands_on,
    is_known_absent,
    is_met,
    reader_of,
    unexpected,
)
from ncclcheck.checks.registry import all_checks
from ncclcheck.model.fact import NOT_READ, Missing
from ncclcheck.model.finding import NotApplicable
from ncclcheck.model.policy.expected import Expectation, Number, Presence, Subnet, Text, VersionRange
from ncclcheck.model.policy.policy_values import COUNTS, SECTIONS
from ncclcheck.model.snapshot import Node
from tests.builders import cluster, node, with_facts, without
from tests.fact_builders import GONE, some
from tests.hardware_builders import rdma_cluster
from tests.policies import with_policy

PROFILES = """
[versions]
torch = "2.9.0"
driver = "570.86.15"
[profile.old]
hosts = "node0[12]"
[profile.old.versions]
torch = "2.8.0"
[profile.hopper]
gpu_model = "*H100*"
[profile.hopper.versions]
driver = "575.1"
"""


@pytest.mark.parametrize(
    ("versions", "observed", "met"),
    [
        ("2.9.0", "2.9.0", True),
        ("2.9.0", "2.9.0+cu128", True),
        ("2.9", "2.9.0", True),
        ("2.9.0+cu128", "2.9.0+cpu", False),
        ("2.9.0", "2.9.1", False),
        (">=2.7,<3", "2.9.0+cu128", True),
        (">=2.7,<3", "3.0.0", False),
        ("==570.*", "570.86.15", True),
        ("570", "570.86.15", False),
        (">=6.8", "6.8.0-45-generic", True),
        ("6.8.0-45-generic", "6.8.0-45-generic", True),
        ("6.8.0-45-generic", "6.8.0-46-generic", False),
        (">=2.7", "2.7.0a0+gitabc", False),
        (">=2.7", "unknown", False),
    ],
)
def test_versions_are_compared_as_in_pep_440(versions: str, observed: str, met: bool) -> None:
    assert is_met(VersionRange(versions), observed) is met


@pytest.mark.parametrize(
    ("wanted", "value", "met"),
    [
        (Number(8), 8.0, True),
        (Number(8), 9.0, False),
        (Number(8, at_least=True), 9.0, True),
        (Number(8, at_least=True), 7.9, False),
        (Number(8, at_least=True), None, True),
        (Number(None, at_least=True), 7.0, False),
        (Number(None, at_least=True), None, True),
        (Number(8, at_least=True), Nothing("no card"), False),
        (Text(("*",), pattern=True), Nothing("no GPU"), False),
        (Text(("NVIDIA H100*",), pattern=True), "NVIDIA H100 80GB HBM3", True),
        (Text(("a", "b")), "b", True),
        (Text(("a*",)), "ab", False),
        (Subnet(("10.0.0.0/16", "fd00::/8")), "10.0.3.4", True),
        (Subnet(("10.0.0.0/16", "fd00::/8")), "fd00::1%eth0", True),
        (Subnet(("10.0.0.0/16",)), "10.1.0.1", False),
        (Presence(True), "", True),
        (Presence(False), "0", False),
        (Presence(False), "not set", True),
    ],
)
def test_a_value_is_as_demanded_or_not(wanted: Any, value: Value, met: bool) -> None:
    assert is_met(wanted, value) is met


def test_a_profile_holds_where_its_hosts_or_gpus_are() -> None:
    snapshot = with_policy(rdma_cluster(3), PROFILES)

    def demanded(host: str) -> dict[str, str]:
        demands, untold = demands_on(node(snapshot, host), snapshot.expected)
        assert untold == ()
        return {demand.key: str(demand.wanted) for demand in demands}

    assert demanded("node01") == {"versions.torch": "2.8.0", "versions.driver": "575.1"}
    assert demanded("node03") == {"versions.torch": "2.9.0", "versions.driver": "575.1"}


def test_a_host_that_goes_by_its_full_name_is_in_its_profile_too() -> None:
    snapshot = with_policy(rdma_cluster(3), PROFILES)
    full = replace(node(snapshot, "node03"), host="node03.cluster.local")
    torch = next(
        demand for demand in demands_on(full, snapshot.expected)[0] if demand.key == "versions.torch"
    )
    assert str(torch.wanted) == "2.9.0"


def test_profile_is_not_judged_if_its_match_is_unknown() -> None:
    snapshot = without(with_policy(rdma_cluster(2), PROFILES), "node02", "gpus")
    demands, untold = demands_on(node(snapshot, "node02"), snapshot.expected)
    assert [demand.key for demand in demands] == ["versions.torch"]
    assert [(profile.name, why) for profile, why in untold] == [("hopper", GONE)]
    unnamed = tuple(replace(gpu, name=GONE) for gpu in some(node(snapshot, "node01").facts.gpus))
    snapshot = with_facts(snapshot, "node01", gpus=unnamed)
    assert demands_on(node(snapshot, "node01"), snapshot.expected)[1][0][1] == GONE


def test_a_machine_without_a_driver_has_no_gpus_for_a_profile() -> None:
    absent = Missing("absent", "no NVIDIA driver is installed")
    snapshot = with_facts(with_policy(rdma_cluster(2), PROFILES), "node02", gpus=absent)
    assert demands_on(node(snapshot, "node02"), snapshot.expected)[1] == ()


def test_nobody_looked_is_not_the_same_as_nothing_there() -> None:
    assert is_known_absent(Missing("absent", "/proc/driver/nvidia/version: No such file or directory"))
    assert not is_known_absent(NOT_READ)
    assert not is_known_absent(Missing("absent", "a recorded tree does not tell"))
    assert not is_known_absent(GONE)


def test_without_a_demand_of_its_kind_a_check_has_nothing_to_judge() -> None:
    answers = list(unexpected(cluster(2), {}, "fix it"))
    assert [type(answer) for answer in answers] == [NotApplicable]


def test_every_key_of_a_policy_is_judged_by_exactly_one_check() -> None:
    keys = [*COUNTS, *(f"{section}.{key}" for section, kinds in SECTIONS.items() for key in kinds)]
    for key in [*keys, "environment.NCCL_DEBUG"]:
        judges = [check.slug for check in all_checks() if {key, key.partition(".")[0]} & set(check.demands)]
        assert len(judges) == 1, (key, judges)


def test_a_reader_may_be_for_a_whole_section() -> None:
    def reader(node: Node, expectation: Expectation) -> Iterator[Seen]:
        yield Seen(node.host, expectation.key, "here")

    readers = {"environment": reader}
    assert reader_of(readers, "environment.X") is not None
    assert reader_of(readers, "versions.torch") is None
