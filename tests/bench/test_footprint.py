"""How much memory a plan needs, and which sizes fit."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.bench.footprint import (
    CPU_POOL_BYTES,
    GPU_POOL_BYTES,
    largest_that_fits,
    memory_needed,
    plan_sizings,
    shortage,
)
from ncclcheck.measure.collectives import COLLECTIVES
from ncclcheck.model.bench import BenchPlan

PLAN = BenchPlan("gloo", ("all_reduce", "all_gather"), (1 << 10, 1 << 20), "float32", 2, None, 5.0, True)
ABOVE_A_PROCESS = 400 << 20


def test_every_point_of_a_plan_has_its_sizing_in_order() -> None:
    sizings = plan_sizings(PLAN, 4)
    assert [(sizing.size_bytes, in_place) for sizing, in_place in sizings] == [
        (1 << 10, True), (1 << 20, True), (1 << 10, False), (1 << 20, False),
    ]  # fmt: skip
    assert [sizing.count for sizing, _ in sizings] == [256, 1 << 18, 64, 1 << 16]


def test_memory_grows_with_the_plan_and_with_the_pool_of_the_backend() -> None:
    def needed(backend: str, *sizes: int) -> int:
        plan = BenchPlan(backend, ("all_reduce",), sizes, "float32", 0, None, 1.0, True)  # type: ignore[arg-type]
        return memory_needed(plan, 8) - ABOVE_A_PROCESS

    assert needed("gloo", 1 << 10) == 32 << 10  # 32 buffers
    assert needed("gloo", 1 << 24) == CPU_POOL_BYTES
    assert needed("nccl", 1 << 24) == 2 * GPU_POOL_BYTES  # as much again empties the cache
    assert needed("gloo", 1 << 30, 8) == 1 << 30  # one buffer at least


def test_the_largest_size_that_fits_is_one_that_was_asked_for_or_a_power_of_two_below_the_end() -> None:
    plan = replace(PLAN, ops=tuple(COLLECTIVES), sizes_bytes=(8, 3 << 20, 1 << 30))
    for gib in (1, 2, 3):
        size = largest_that_fits(plan, 2, gib << 30)
        assert size is not None
        assert size in (3 << 20, *(1 << bits for bits in range(31)))
        assert memory_needed(replace(plan, sizes_bytes=(8, size)), 2) <= gib << 30
        assert memory_needed(replace(plan, sizes_bytes=(8, 2 * size)), 2) > gib << 30
    assert largest_that_fits(plan, 2, 1 << 40) == 1 << 30
    assert largest_that_fits(plan, 2, 100 << 20) is None
    below = largest_that_fits(replace(plan, sizes_bytes=(1 << 30,)), 2, 1 << 30)
    assert below is not None
    assert (1 << 20) < below < (1 << 30)


def test_a_shortage_offers_the_sizes_that_fit() -> None:
    plan = replace(PLAN, ops=("all_reduce",), sizes_bytes=(8, 1 << 30))
    assert shortage(plan, 2, 2, 2 << 30, "node1 has") == (
        "1G, the largest of --sizes, needs 3.0 GB of memory for 2 ranks, node1 has 2.1 GB: "
        "the largest size that fits is 512M: give --sizes 8B-512M"
    )
    alone = replace(plan, sizes_bytes=(1 << 30,))
    assert shortage(alone, 2, 1, 1 << 30, "node1 has").endswith("is 512M: give --sizes 512M")
    assert shortage(alone, 2, 1, 1 << 20, "node1 has").endswith("not even 1 byte fits")
