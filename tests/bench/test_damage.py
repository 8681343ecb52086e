"""Every collective on a real group of three ranks whose data are damaged in one iteration: seen, and named right."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from typing import get_args

import pytest

from ncclcheck.model.bench import Op, Point
from ncclcheck.model.codec import decode
from tests.bench.damaged_rank import DAMAGED_ELEMENT, DAMAGED_ITERATION, DAMAGES

pytestmark = pytest.mark.slow
WORLD = 3
ELEMENTS = 48 << 8  # of one buffer of the plan
ROOTED = ("reduce", "gather")  # only the root receives something


@pytest.fixture(scope="module")
def points() -> dict[str, dict[str, Point]]:
    """Kind of damage -> op -> the point that was measured under it."""
    environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo", "TORCH_CPP_LOG_LEVEL": "ERROR"}
    command = [sys.executable, "-m", "tests.bench.damaged_rank", str(WORLD)]
    group = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    try:
        out, errors = group.communicate(timeout=90)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(group.pid, signal.SIGKILL)
    assert group.returncode == 0, errors.decode()
    lines = [json.loads(line) for line in out.splitlines()]
    return {name: {point["op"]: decode(json.dumps(point), Point) for point in found} for name, found in lines}


def test_every_collective_was_measured_under_every_damage(points: dict[str, dict[str, Point]]) -> None:
    assert list(points) == list(DAMAGES)
    for found in points.values():
        assert list(found) == list(get_args(Op))


@pytest.mark.parametrize("op", get_args(Op))
def test_an_honest_group_has_no_wrong_element(points: dict[str, dict[str, Point]], op: Op) -> None:
    point = points["nothing"][op]
    assert (point.wrong, point.wrong_ranks, point.first_wrong, point.iters) == (0, (), None, 2)


@pytest.mark.parametrize("op", get_args(Op))
def test_one_flipped_bit_is_named_to_the_element(points: dict[str, dict[str, Point]], op: Op) -> None:
    point = points["flipped bit"][op]
    rank = 0 if op in ROOTED else WORLD - 1
    assert (point.wrong, point.wrong_ranks) == (1, (rank,))
    first = point.first_wrong
    assert first is not None
    assert (first.rank, first.iteration, first.offset) == (rank, DAMAGED_ITERATION, DAMAGED_ELEMENT)
    assert first.got != first.expected


@pytest.mark.parametrize("op", get_args(Op))
def test_swapped_chunks_are_wrong_on_every_rank_that_receives(
    points: dict[str, dict[str, Point]], op: Op
) -> None:
    point = points["swapped chunks"][op]
    assert point.wrong_ranks == ((0,) if op in ROOTED else tuple(range(WORLD)))
    assert point.wrong is not None
    assert point.wrong > ELEMENTS / WORLD / 2


@pytest.mark.parametrize("op", get_args(Op))
def test_a_rank_that_is_skipped_is_seen_by_all_that_needed_it(
    points: dict[str, dict[str, Point]], op: Op
) -> None:
    sender = points["skipped sender"][op]
    needed_by = {"broadcast": (), "scatter": (), "reduce": (0,), "gather": (0,), "send_recv": (2,)}
    assert sender.wrong_ranks == needed_by.get(op, (0, 1, 2))
    receiver = points["skipped receiver"][op]
    without_it = {"reduce": (0,), "gather": (0,), "broadcast": (1,)}  # the root has what it broadcasts
    assert receiver.wrong_ranks == without_it.get(op, (0, 1))
