"""What is expected of a collective is what it does by definition, worked out here from what every rank sends."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from ncclcheck.bench import data
from ncclcheck.bench.collectives import (
    COLLECTIVES,
    CPU_POOL_BYTES,
    ELEMENT_BYTES,
    GPU_POOL_BYTES,
    memory_needed,
    plan_sizings,
)
from ncclcheck.model.bench import BenchPlan, Op

pytestmark = pytest.mark.slow  # imports torch
PLAN = BenchPlan("gloo", ("all_reduce", "all_gather"), (1 << 10, 1 << 20), "float32", 2, None, 5.0, True)
SIZE = 1 << 16
ITERATION = 7
ABOVE_A_PROCESS = 400 << 20


def sent(op: Op, rank: int, world_size: int, dtype: str) -> Tensor:
    collective = COLLECTIVES[op]
    sizing = collective.sizing(SIZE, ELEMENT_BYTES[dtype], world_size)
    buffer = torch.zeros(sizing.send_count, dtype=getattr(torch, dtype))
    data.fill(buffer, collective.sent(rank, world_size, dtype), ITERATION)
    return buffer


def done(op: Op, buffers: list[Tensor]) -> Tensor:
    """The result of the collective by its definition (NCCL user guide, "Collective Operations")."""
    return torch.stack(buffers).sum(0, dtype=buffers[0].dtype) if op == "all_reduce" else torch.cat(buffers)


def wrong(op: Op, result: Tensor, world_size: int, dtype: str) -> int:
    """Elements that are not as expected."""
    collective = COLLECTIVES[op]
    chunks = collective.chunks(world_size)
    found = [
        data.difference(part, collective.expected(chunk, world_size, dtype), ITERATION)
        for chunk, part in enumerate(result.chunk(chunks))
    ]
    return sum(one.wrong for one in found if one is not None)


@pytest.mark.parametrize("dtype", sorted(ELEMENT_BYTES))
@pytest.mark.parametrize("world_size", [1, 2, 5, 8])
@pytest.mark.parametrize("op", sorted(COLLECTIVES))
def test_the_result_by_definition_is_the_expected_one(op: Op, world_size: int, dtype: str) -> None:
    result = done(op, [sent(op, rank, world_size, dtype) for rank in range(world_size)])
    assert result.numel() == COLLECTIVES[op].sizing(SIZE, ELEMENT_BYTES[dtype], world_size).recv_count
    assert wrong(op, result, world_size, dtype) == 0


@pytest.mark.parametrize("dtype", sorted(ELEMENT_BYTES))
@pytest.mark.parametrize("op", sorted(COLLECTIVES))
def test_one_flipped_bit_a_skipped_rank_and_a_call_that_did_nothing_are_not(op: Op, dtype: str) -> None:
    buffers = [sent(op, rank, 4, dtype) for rank in range(4)]
    result = done(op, buffers)
    flipped = result.clone()
    flipped.view(torch.uint8)[1000] ^= 1
    assert wrong(op, flipped, 4, dtype) == 1
    skipped = done(op, [buffers[0], torch.zeros_like(buffers[1]), *buffers[2:]])
    assert wrong(op, skipped, 4, dtype) > 100
    assert wrong(op, torch.zeros_like(result), 4, dtype) == result.numel()


@pytest.mark.parametrize("op", sorted(COLLECTIVES))
def test_swapped_ranks_show_exactly_where_the_order_matters(op: Op) -> None:
    buffers = [sent(op, rank, 4, "float32") for rank in (0, 2, 1, 3)]
    assert (wrong(op, done(op, buffers), 4, "float32") > 0) is (op == "all_gather")


def test_each_collective_goes_by_its_own_name_and_factor() -> None:
    assert {op: one.name for op, one in COLLECTIVES.items()} == {op: op for op in COLLECTIVES}
    assert COLLECTIVES["all_reduce"].bus_factor(4) == 1.5
    assert COLLECTIVES["all_gather"].bus_factor(4) == 0.75


def test_every_point_of_a_plan_has_its_sizing_in_order() -> None:
    sizings = plan_sizings(PLAN, 4)
    assert [(one.size_bytes, in_place) for one, in_place in sizings] == [
        (1 << 10, True), (1 << 20, True), (1 << 10, False), (1 << 20, False),
    ]  # fmt: skip
    assert [one.count for one, _ in sizings] == [256, 1 << 18, 64, 1 << 16]


def test_memory_grows_with_the_plan_and_with_the_pool_of_the_backend() -> None:
    def needed(backend: str, *sizes: int) -> int:
        plan = BenchPlan(backend, ("all_reduce",), sizes, "float32", 0, None, 1.0, True)  # type: ignore[arg-type]
        return memory_needed(plan, 8) - ABOVE_A_PROCESS

    assert needed("gloo", 1 << 10) == 32 << 10  # 32 buffers
    assert needed("gloo", 1 << 24) == CPU_POOL_BYTES
    assert needed("nccl", 1 << 24) == GPU_POOL_BYTES
    assert needed("gloo", 1 << 30, 8) == 1 << 30  # one buffer at least


@pytest.mark.usefixtures("group")
@pytest.mark.parametrize("op", sorted(COLLECTIVES))
def test_the_call_itself_does_it_on_a_real_group(op: Op) -> None:
    collective = COLLECTIVES[op]
    send = sent(op, 0, 1, "int32")
    recv = send.clone() if collective.in_place else torch.zeros_like(send)
    collective.run(send, recv)
    assert wrong(op, recv, 1, "int32") == 0
