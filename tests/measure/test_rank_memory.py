"""A plan's memory is known before it starts."""

from __future__ import annotations

from ncclcheck.measure.busbw import Sizing, gathered_parts, whole_buffer
from ncclcheck.measure.rank_memory import memory_bytes, pool_buffers, refusals, storage
from ncclcheck.model.bench import BenchPlan

MIB = 1 << 20


def test_small_sizes_rotate_through_many_buffers_and_large_ones_through_one() -> None:
    assert pool_buffers(whole_buffer(1024, 4, 2), 4, 64 * MIB) == 32
    assert pool_buffers(whole_buffer(16 * MIB, 4, 2), 4, 64 * MIB) == 4
    assert pool_buffers(whole_buffer(1024 * MIB, 4, 2), 4, 64 * MIB) == 1


def test_one_storage_serves_all_points_one_after_the_other() -> None:
    sizings: list[tuple[Sizing, bool]] = [
        (whole_buffer(64 * MIB, 4, 4), True),
        (gathered_parts(64 * MIB, 4, 4), False),
    ]
    need = storage(sizings, 4, 64 * MIB)
    assert need.recv_count * 4 == 64 * MIB
    assert need.send_count * 4 == 16 * MIB


def test_memory_grows_with_the_largest_size() -> None:
    small = memory_bytes([(whole_buffer(64 * MIB, 4, 4), True)], 4, 64 * MIB)
    large = memory_bytes([(whole_buffer(1024 * MIB, 4, 4), True)], 4, 64 * MIB)
    assert large - small == 960 * MIB


def test_what_the_backend_refuses_is_one_sentence_for_each_reason() -> None:
    plan = BenchPlan("gloo", ("all_reduce", "reduce", "gather"), (8, 16), "float8_e5m2", 0, None, 1.0, True)
    why = "Invalid scalar type"
    assert refusals(plan, {0: why, 1: why, 2: why, 3: why, 4: "no gather", 5: "no gather"}) == (
        "gloo here cannot do all_reduce, reduce of float8_e5m2: Invalid scalar type",
        "gloo here cannot do gather of float8_e5m2: no gather",
    )
    assert refusals(plan, {}) == ()
