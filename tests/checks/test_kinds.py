"""A check that judges one node of each kind says what it says when it judges every node."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from msgspec.structs import replace

from ncclcheck.checks.kinds import one_of_each_kind
from ncclcheck.checks.registry import Answer, Check, all_checks, run_check
from ncclcheck.model.codec import encode
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import NodeFacts
from ncclcheck.model.finding import CheckRun
from ncclcheck.model.formats.shared_values import decode_shared
from ncclcheck.model.saved import Saved
from ncclcheck.model.snapshot import Snapshot
from tests.fact_builders import some
from tests.further import mostly_further
from tests.large_runs import _WAYS, large_run

NODES, ODD = 8, 3
CHECKS = tuple(check for check in all_checks() if check.alike)
HEALTHY = decode_shared(encode(large_run(NODES, "healthy")), Saved).snapshot  # what is equal is one object


def _with(**sections: object) -> Snapshot:
    nodes = list(HEALTHY.nodes)
    nodes[ODD] = replace(nodes[ODD], facts=replace(nodes[ODD].facts, **sections))
    return replace(HEALTHY, nodes=tuple(nodes))


def _gpu(**changes: object) -> Snapshot:
    gpus = some(HEALTHY.nodes[ODD].facts.gpus)
    return _with(gpus=(*gpus[:-1], replace(gpus[-1], **changes)))


def _state(**changes: object) -> Snapshot:
    return _gpu(state=replace(some(HEALTHY.nodes[ODD].facts.gpus)[-1].state, **changes))


def _port(**changes: object) -> Snapshot:
    rdma = some(HEALTHY.nodes[ODD].facts.rdma)
    return _with(rdma=replace(rdma, ports=(*rdma.ports[:-1], replace(rdma.ports[-1], **changes))))


def _environment(**variables: str) -> Snapshot:
    return _with(environment={**some(HEALTHY.nodes[ODD].facts.environment), **variables})


def _work_of_another_gpu() -> Snapshot:
    work = some(HEALTHY.nodes[ODD].facts.gpu_work)
    return _with(gpu_work=(*work[:-1], replace(work[-1], uuid="GPU-of-nobody")))


UNREAD = Missing("timeout", "it did not answer")
ODD_NODES: dict[str, Callable[[], Snapshot]] = {
    "none": lambda: HEALTHY,
    **{way.__name__: lambda way=way: way(HEALTHY, ODD) for way in _WAYS},  # type: ignore[misc]
    **{
        f"{section} unread": lambda section=section: _with(**{section: UNREAD})  # type: ignore[misc]
        for section in NodeFacts.__struct_fields__
    },
    "gpu name": lambda: _gpu(name="NVIDIA A100"),
    "gpu without uuid": lambda: _gpu(uuid=UNREAD),
    "gpu work of another": _work_of_another_gpu,
    "ecc": lambda: _state(ecc_uncorrected_volatile=4),
    "busy": lambda: _state(memory_used_bytes=60 << 30),
    "slowed": lambda: _state(slowdowns=("hw-thermal-slowdown",)),
    "nvlinks": lambda: _state(nvlinks=()),
    "ib off": lambda: _environment(NCCL_IB_DISABLE="1"),
    "hca": lambda: _environment(NCCL_IB_HCA="mlx5_1"),
    "mtu": lambda: _port(active_mtu=1024),
    "rate": lambda: _port(rate_gbps=100.0),
    "firmware": lambda: _port(firmware="1.0.0"),
    "link layer": lambda: _port(link_layer="Ethernet"),
    "uverbs": lambda: _with(rdma=replace(some(HEALTHY.nodes[ODD].facts.rdma), device_files=())),
}


def _all_nodes(check: Check, snapshot: Snapshot) -> CheckRun:
    return run_check(replace(check, alike=()), snapshot)


@pytest.mark.parametrize("name", ODD_NODES)
def test_each_check_says_the_same_of_one_node_of_each_kind_as_of_all(name: str) -> None:
    snapshot = ODD_NODES[name]()
    for check in CHECKS:
        assert replace(run_check(check, snapshot), seconds=0.0) == replace(
            _all_nodes(check, snapshot), seconds=0.0
        )


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.slug)
def test_it_reads_no_section_that_it_does_not_name(check: Check) -> None:
    """A section that it does not name is missing where it judges kinds, which it would have something to say of."""
    assert list(check.body(one_of_each_kind(HEALTHY, check.alike))) == list(check.body(HEALTHY))


@pytest.mark.parametrize(
    "sections", [("gpus", "gpu_work", "pci"), ("environment", "nccl", "rdma", "software")]
)
def test_nodes_that_differ_in_serial_numbers_and_addresses_are_of_one_kind(sections: tuple[str, ...]) -> None:
    few = one_of_each_kind(HEALTHY, sections)
    assert len(few.nodes) < NODES
    assert few.nodes[0].host == HEALTHY.nodes[0].host


@pytest.mark.parametrize("nodes", [2, 300])
def test_a_broken_run_of_many_nodes_is_judged_to_the_letter(nodes: int) -> None:
    """Some nodes are silent in it, and others broken in several ways at once."""
    broken = decode_shared(encode(large_run(300, "broken")), Saved).snapshot
    snapshot = replace(broken, nodes=broken.nodes[-nodes:])
    for check in CHECKS:
        assert replace(run_check(check, snapshot), seconds=0.0) == replace(
            _all_nodes(check, snapshot), seconds=0.0
        )


def _judged(check: Check, snapshot: Snapshot) -> int:
    """How many nodes the check is asked about at once."""
    judged: list[int] = []

    def body(snapshot: Snapshot) -> Iterator[Answer]:
        judged.append(len(snapshot.nodes))
        return iter(check.body(snapshot))

    run_check(replace(check, body=body), snapshot)
    return max(judged)


def test_where_only_something_is_not_known_the_kinds_that_it_is_not_known_of_are_judged() -> None:
    many = decode_shared(encode(large_run(100, "healthy")), Saved).snapshot
    nodes = list(many.nodes)
    nodes[ODD] = replace(nodes[ODD], facts=replace(nodes[ODD].facts, gpus=UNREAD))
    (check,) = (check for check in CHECKS if check.slug == "gpu-differs")
    assert _judged(check, replace(many, nodes=tuple(nodes))) < len(nodes) // 10


@pytest.mark.parametrize(
    "check",
    mostly_further([check for check in CHECKS if check.by_node], 5),  # mark.further
    ids=lambda check: check.slug,
)
def test_only_the_kinds_that_there_is_something_to_say_of_are_judged_node_by_node(check: Check) -> None:
    broken = decode_shared(encode(large_run(300, "broken")), Saved).snapshot
    assert _judged(check, broken) < len(broken.nodes) // 10
