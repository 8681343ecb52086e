"""Mutation test over all checks: without a fact that decides its verdict, no check passes."""

from __future__ import annotations

import types
from collections.abc import Iterator
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
from msgspec.structs import replace

from ncclcheck.checks.registry import Check, all_checks, run_check
from ncclcheck.model.fact import Missing, Why
from ncclcheck.model.facts import NodeFacts
from ncclcheck.model.gpu import PeerAccess
from ncclcheck.model.hardware import Pci, RdmaCounters
from ncclcheck.model.policy.expected import Number
from ncclcheck.model.snapshot import Snapshot
from tests.bench_builders import with_bench
from tests.builders import node
from tests.checks.poison import Path, Poison, PoisonedError, fact_paths, put
from tests.fact_builders import some
from tests.further import mostly_further
from tests.hardware_builders import above_gpu, above_nic, gpu_of, nic_of, rdma_cluster, roce_cluster

HOST = "node02"
KINDS: tuple[Why, ...] = get_args(Why)
CLUSTERS = {"InfiniBand": rdma_cluster, "RoCE": roce_cluster}
# Where a verdict does not need the fact: another one answers the same question, or that there is none is the answer.
# Whatever is not here must not pass without a fact that can turn its verdict.
NOT_NEEDED: dict[tuple[str, str], tuple[Why, ...]] = {
    ("driver-too-old", "gpu_driver"): KINDS,  # the version of the driver itself is compared then
    ("driver-too-old", "gpu_driver.cuda"): KINDS,
    ("code-differs", "code.paths.git_commit"): ("absent",),  # outside git only the content is compared
    ("code-differs", "code.paths.git_dirty"): ("absent",),
    ("gpu-count", "torch_gpus"): ("unsupported",),  # a torch without CUDA is for no GPU
    ("gpu-count", "torch_gpus.count"): ("unsupported",),
}


@cache
def healthy(kind: str) -> Snapshot:
    """Three nodes with two GPUs and two ports each: as much as a comparison needs."""
    snapshot = with_bench(CLUSTERS[kind](3))
    demands = tuple(
        replace(expectation, wanted=Number(2.0)) if expectation.key.endswith("s_per_node") else expectation
        for expectation in snapshot.expected.expectations
    )
    return replace(
        snapshot,
        nodes=tuple(replace(one, facts=with_two_rails(one.facts)) for one in snapshot.nodes),
        expected=replace(snapshot.expected, expectations=demands),
    )


def with_two_rails(facts: NodeFacts) -> NodeFacts:
    gpus = tuple(
        replace(gpu, state=replace(gpu.state, peers=(PeerAccess(1 - gpu.index, "ok"),)))
        for gpu in some(facts.gpus)[:2]
    )
    own = {
        address
        for rail in range(2)
        for address in (*above_nic(rail), *above_gpu(rail), nic_of(rail), gpu_of(rail))
    }
    return replace(
        facts,
        gpus=gpus,
        gpu_work=some(facts.gpu_work)[:2],
        torch_gpus=replace(some(facts.torch_gpus), count=2),
        launch=replace(some(facts.launch), nproc_per_node=2),
        rdma=replace(some(facts.rdma), ports=some(facts.rdma).ports[:2]),
        rdma_counters=RdmaCounters(some(facts.rdma_counters).ports[:2]),
        pci=Pci(tuple(device for device in some(facts.pci).devices if device.address in own)),
    )


def mutated(kind: str, path: Path, new: object) -> Snapshot:
    """The healthy cluster in which a fact of one node is something else."""
    snapshot = healthy(kind)
    return replace(
        snapshot,
        nodes=tuple(
            replace(one, facts=put(one.facts, path, new)) if one.host == HOST else one
            for one in snapshot.nodes
        ),
    )


def reads(check: Check, kind: str, path: Path) -> bool:
    """Does the check look at the fact on a healthy cluster?"""
    try:
        return run_check(check, mutated(kind, path, Poison())).outcome == "crashed"
    except PoisonedError:
        return True


def words(hint: Any) -> list[object]:
    """The values of a Literal, also inside a union."""
    if get_origin(hint) is Literal:
        return list(get_args(hint))
    if get_origin(hint) in (Union, types.UnionType):
        nothing = [None] if type(None) in get_args(hint) else []
        return [word for part in get_args(hint) for word in words(part)] + nothing
    return []


def others(value: object, hint: Any) -> Iterator[object]:
    """Other values that such a fact could have."""
    yield from (word for word in words(hint) if word != value)
    match value:
        case bool():
            yield not value
        case int() | float():
            yield from (0, 1, value * 1000 + 1, value / 1000, -1)
        case str():
            yield from ("", "other", "0.1", "999.9", "DOWN", "127.0.0.1", "Ethernet", "InfiniBand")
        case None:
            yield from (0, 1, 1.0)
        case tuple():
            yield from ((), value[:-1], (*value, "other"))
        case dict():
            yield from ({}, {**value, "torch": "0.0", "NCCL_P2P_DISABLE": "1"})


def value_at(kind: str, path: Path) -> tuple[Any, Any]:
    """The fact at that path, and its type."""
    at: Any = node(healthy(kind), HOST).facts
    hint: Any = None
    for step in path:
        hint = None if isinstance(step, int) else get_type_hints(type(at))[step]
        at = at[step] if isinstance(step, int) else getattr(at, step)
    return at, getattr(hint, "value_type", hint)


def decides(check: Check, kind: str, path: Path) -> bool:
    """Can the fact alone turn the verdict?"""
    value, hint = value_at(kind, path)
    return any(
        run_check(check, mutated(kind, path, other)).outcome == "found" for other in others(value, hint)
    )


def name_of(path: Path) -> str:
    return ".".join(step for step in path if isinstance(step, str))


def passing(check: Check, kind: str, path: Path) -> list[str]:
    """The kinds of Missing under which the check passes all the same, or does not say why it cannot tell."""
    found = []
    for why in KINDS:
        if why in NOT_NEEDED.get((check.slug, name_of(path)), ()):
            continue
        result = run_check(check, mutated(kind, path, Missing(why, "mutated")))
        if result.outcome == "passed" or (result.outcome != "found" and not result.reason):
            found.append(f"{name_of(path)} {why}: {result.outcome}")
    return found


def faults(check: Check, kind: str) -> Iterator[str]:
    paths = list(fact_paths(node(healthy(kind), HOST).facts))
    for section in dict.fromkeys(path[0] for path in paths):
        if not reads(check, kind, (section,)):
            continue
        within = [path for path in paths if path[0] == section and reads(check, kind, path)]
        for path in within:
            wrong = passing(check, kind, path)
            if wrong and any(decides(check, kind, inner) for inner in within if inner[: len(path)] == path):
                yield from wrong


def judged_on(check: Check) -> tuple[str, ...]:
    """Only checks of RDMA see the difference between InfiniBand and RoCE."""
    return tuple(CLUSTERS) if check.code.startswith("NC3") else ("InfiniBand",)


@pytest.mark.parametrize(
    ("one", "kind"),
    mostly_further(
        [(check, kind) for check in all_checks() for kind in judged_on(check)], 50
    ),  # mark.further
    ids=lambda value: value if isinstance(value, str) else str(value.slug),
)
def test_without_a_fact_that_decides_it_a_check_does_not_pass(one: Check, kind: str) -> None:
    assert list(faults(one, kind)) == []


def test_the_mutations_find_what_a_verdict_rests_on() -> None:
    check = next(all_check for all_check in all_checks() if all_check.slug == "gpu-ecc")
    paths = list(fact_paths(node(healthy("InfiniBand"), HOST).facts))
    deciding = {name_of(path) for path in paths if path[0] == "gpus" and decides(check, "InfiniBand", path)}
    assert {"gpus.state.ecc_uncorrected_volatile", "gpus.state.remap_pending"} <= deciding


@pytest.mark.parametrize("kind", CLUSTERS)
@pytest.mark.parametrize("check", all_checks(), ids=lambda one: str(one.slug))
def test_the_cluster_that_is_mutated_is_healthy(check: Check, kind: str) -> None:
    assert run_check(check, healthy(kind)).outcome in ("passed", "not_applicable")
