"""What is expected of a collective is what it does by definition, worked out here from what every rank sends."""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

import pytest
import torch
from msgspec.structs import replace
from torch import Tensor

from ncclcheck.bench import data
from ncclcheck.bench.collectives import (
    COLLECTIVES,
    CPU_POOL_BYTES,
    ELEMENT_BYTES,
    GPU_POOL_BYTES,
    ROOT,
    Seat,
    largest_that_fits,
    memory_needed,
    plan_sizings,
    shortage,
)
from ncclcheck.bench.data import Tables
from ncclcheck.model.bench import BenchPlan, Op

pytestmark = pytest.mark.slow  # imports torch
PLAN = BenchPlan("gloo", ("all_reduce", "all_gather"), (1 << 10, 1 << 20), "float32", 2, None, 5.0, True)
SIZE = 3 << 14
ITERATION = 7
ABOVE_A_PROCESS = 400 << 20
OPS = sorted(COLLECTIVES)
DTYPES = sorted(ELEMENT_BYTES)
# The collectives by their definition (NCCL user guide, "Collective Operations" and "Point-to-point communication";
# MPI standard for gather and scatter): the buffers of all ranks in, what each receives out. None: not defined.
Definition = Callable[[list[Tensor]], "list[Tensor | None]"]


def whole_sum(sent: list[Tensor]) -> Tensor:
    return torch.stack([one.to(torch.float64) for one in sent]).sum(0).to(sent[0].dtype)


def at_root(result: Tensor, world_size: int) -> list[Tensor | None]:
    return [result if rank == ROOT else None for rank in range(world_size)]


BY_DEFINITION: dict[Op, Definition] = {
    "all_reduce": lambda sent: [whole_sum(sent)] * len(sent),
    "all_gather": lambda sent: [torch.cat(sent)] * len(sent),
    "reduce_scatter": lambda sent: list(whole_sum(sent).chunk(len(sent))),
    "all_to_all": lambda sent: [
        torch.cat([one.chunk(len(sent))[rank] for one in sent]) for rank in range(len(sent))
    ],
    "broadcast": lambda sent: [sent[ROOT]] * len(sent),
    "reduce": lambda sent: at_root(whole_sum(sent), len(sent)),
    "gather": lambda sent: at_root(torch.cat(sent), len(sent)),
    "scatter": lambda sent: list(sent[ROOT].chunk(len(sent))),
    "send_recv": lambda sent: [sent[rank - 1] for rank in range(len(sent))],
}
ORDER_MATTERS = set(BY_DEFINITION) - {"all_reduce", "reduce", "reduce_scatter"}


def sent_by(op: Op, rank: int, world_size: int, dtype: str) -> Tensor:
    collective = COLLECTIVES[op]
    sizing = collective.sizing(SIZE, ELEMENT_BYTES[dtype], world_size)
    buffer = torch.zeros(sizing.send_count, dtype=getattr(torch, dtype))
    content = collective.sent(Seat(rank, world_size))
    data.fill(buffer, content, Tables(world_size, dtype), ITERATION)
    return buffer


def wrong(op: Op, result: Tensor, rank: int, world_size: int, dtype: str) -> int:
    """Elements of what the rank received that are not as expected."""
    expected = COLLECTIVES[op].expected(Seat(rank, world_size))
    found = data.difference(result, expected, Tables(world_size, dtype), ITERATION)
    return 0 if found is None else found.wrong


def all_wrong(op: Op, results: list[Tensor | None], world_size: int, dtype: str = "float32") -> int:
    """The same, over all ranks whose result is defined."""
    return sum(
        wrong(op, result, rank, world_size, dtype)
        for rank, result in enumerate(results)
        if result is not None
    )


def test_every_collective_of_the_contract_is_there_under_its_own_name() -> None:
    assert set(COLLECTIVES) == set(get_args(Op)) == set(BY_DEFINITION)
    assert {op: collective.name for op, collective in COLLECTIVES.items()} == {op: op for op in COLLECTIVES}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("world_size", [1, 2, 5, 8])
@pytest.mark.parametrize("op", OPS)
def test_the_result_by_definition_is_the_expected_one(op: Op, world_size: int, dtype: str) -> None:
    results = BY_DEFINITION[op]([sent_by(op, rank, world_size, dtype) for rank in range(world_size)])
    sizing = COLLECTIVES[op].sizing(SIZE, ELEMENT_BYTES[dtype], world_size)
    assert len(results) == world_size
    for rank, result in enumerate(results):
        assert COLLECTIVES[op].receives(Seat(rank, world_size)) == (result is not None)
        if result is not None:
            assert result.numel() == sizing.recv_count
            assert wrong(op, result, rank, world_size, dtype) == 0


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", OPS)
def test_one_flipped_bit_and_a_call_that_did_nothing_are_wrong(op: Op, dtype: str) -> None:
    sent = [sent_by(op, rank, 4, dtype) for rank in range(4)]
    for rank, result in enumerate(BY_DEFINITION[op](sent)):
        if result is None:
            continue
        flipped = result.clone()
        flipped.view(torch.uint8)[1000] ^= 1
        assert wrong(op, flipped, rank, 4, dtype) == 1
        assert wrong(op, torch.zeros_like(result), rank, 4, dtype) == result.numel()
        if COLLECTIVES[op].in_place and rank != ROOT:  # the root of a broadcast has what it is to have
            assert wrong(op, sent[rank], rank, 4, dtype) > result.numel() / 8


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", OPS)
def test_a_skipped_rank_is_wrong_wherever_it_has_something_to_give(op: Op, dtype: str) -> None:
    sent = [sent_by(op, rank, 4, dtype) for rank in range(4)]
    for skipped in range(4):
        without = [torch.zeros_like(one) if rank == skipped else one for rank, one in enumerate(sent)]
        gives = skipped == ROOT or op not in ("broadcast", "scatter")
        assert (all_wrong(op, BY_DEFINITION[op](without), 4, dtype) > 100) is gives


@pytest.mark.parametrize("op", OPS)
def test_swapped_ranks_show_exactly_where_the_order_matters(op: Op) -> None:
    sent = [sent_by(op, rank, 4, "float32") for rank in (2, 0, 1, 3)]
    assert (all_wrong(op, BY_DEFINITION[op](sent), 4) > 0) is (op in ORDER_MATTERS)


@pytest.mark.parametrize("op", [op for op in OPS if op not in ("gather", "reduce")])  # only the root receives
def test_what_was_meant_for_another_rank_is_wrong_wherever_the_ranks_receive_different_things(op: Op) -> None:
    results = BY_DEFINITION[op]([sent_by(op, rank, 4, "bfloat16") for rank in range(4)])
    same_for_all = op in ("all_reduce", "all_gather", "broadcast")
    assert (all_wrong(op, [*results[1:], results[0]], 4, "bfloat16") == 0) is same_for_all


@pytest.mark.parametrize("op", OPS)
def test_swapped_parts_of_a_result_are_wrong(op: Op) -> None:
    for rank, result in enumerate(BY_DEFINITION[op]([sent_by(op, one, 4, "int8") for one in range(4)])):
        if result is not None:
            one, other, *rest = result.chunk(4)
            assert wrong(op, torch.cat((other, one, *rest)), rank, 4, "int8") > one.numel()


def test_the_bus_factors_are_those_of_nccl_tests() -> None:
    factors = {op: COLLECTIVES[op].bus_factor(4) for op in OPS}
    assert factors == {
        "all_reduce": 1.5, "all_gather": 0.75, "reduce_scatter": 0.75, "all_to_all": 0.75, "gather": 0.75,
        "scatter": 0.75, "broadcast": 1.0, "reduce": 1.0, "send_recv": 1.0,
    }  # fmt: skip


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


@pytest.mark.usefixtures("group")
@pytest.mark.parametrize("op", OPS)
def test_the_call_itself_does_it_on_a_real_group(op: Op) -> None:
    collective, seat = COLLECTIVES[op], Seat(0, 1)
    send = sent_by(op, 0, 1, "int32")
    recv = send if collective.in_place else torch.zeros_like(send)
    collective.bind(seat, send, recv)()
    assert wrong(op, recv, 0, 1, "int32") == 0
