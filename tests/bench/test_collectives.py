"""What is expected of a collective is what it does by definition, worked out here from what every rank sends."""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

import pytest
import torch
from torch import Tensor

from ncclcheck.bench import data
from ncclcheck.bench.data import Tables
from ncclcheck.bench.footprint import ELEMENT_BYTES
from ncclcheck.measure.collectives import COLLECTIVES, ROOT, RankContext
from ncclcheck.model.bench import Op

pytestmark = pytest.mark.slow  # imports torch
SIZE = 3 << 14
ITERATION = 7
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
    content = collective.sent(RankContext(rank, world_size))
    data.fill(buffer, content, Tables(world_size, dtype), ITERATION)
    return buffer


def wrong(op: Op, result: Tensor, rank: int, world_size: int, dtype: str) -> int:
    """Elements of what the rank received that are not as expected."""
    expected = COLLECTIVES[op].expected(RankContext(rank, world_size))
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
@pytest.mark.parametrize("world_size", [1, 2, 5, pytest.param(8, marks=pytest.mark.further)])
@pytest.mark.parametrize("op", OPS)
def test_the_result_by_definition_is_the_expected_one(op: Op, world_size: int, dtype: str) -> None:
    results = BY_DEFINITION[op]([sent_by(op, rank, world_size, dtype) for rank in range(world_size)])
    sizing = COLLECTIVES[op].sizing(SIZE, ELEMENT_BYTES[dtype], world_size)
    assert len(results) == world_size
    for rank, result in enumerate(results):
        assert COLLECTIVES[op].receives(RankContext(rank, world_size)) == (result is not None)
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


@pytest.mark.usefixtures("group")
@pytest.mark.parametrize("op", OPS)
def test_the_call_itself_does_it_on_a_real_group(op: Op) -> None:
    collective = COLLECTIVES[op]
    send = sent_by(op, 0, 1, "int32")
    recv = send if collective.in_place else torch.zeros_like(send)
    collective.bind(torch.distributed, RankContext(0, 1), send, recv)()
    assert wrong(op, recv, 0, 1, "int32") == 0
