"""Which settings of a job a benchmark leaves out."""

from __future__ import annotations

import pytest

from ncclcheck.model.bench_setup import DISTORTING
from ncclcheck.nccl.distorting import distorting
from ncclcheck.nccl.settable import refusal


@pytest.mark.parametrize(
    ("name", "value", "distorts"),
    [
        ("CUDA_LAUNCH_BLOCKING", "1", True),
        ("CUDA_LAUNCH_BLOCKING", "0", False),
        ("TORCH_NCCL_BLOCKING_WAIT", "true", True),
        ("NCCL_BLOCKING_WAIT", "0", False),
        ("TORCH_NCCL_NAN_CHECK", "1", True),
        ("TORCH_DISTRIBUTED_DEBUG", "detail", True),
        ("TORCH_DISTRIBUTED_DEBUG", "INFO", False),
        ("NCCL_DEBUG", "INFO", False),
    ],
)
def test_only_what_slows_calls_down_distorts(name: str, value: str, *, distorts: bool) -> None:
    assert distorting({name: value}) == ((name,) if distorts else ())


@pytest.mark.parametrize("name", DISTORTING)
def test_node_0_may_take_it_away(name: str) -> None:
    assert refusal(name, None) is None
