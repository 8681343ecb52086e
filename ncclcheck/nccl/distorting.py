"""Settings of the job that find faults and distort times: a benchmark measures without them, and says so.

torch reads a switch as `getCvarBool` does (`torch/csrc/distributed/c10d/Utils.hpp`, 2.2 to 2.13), CUDA a number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ncclcheck.model.bench_setup import DISTORTING

_TRUE = frozenset({"y", "yes", "1", "t", "true"})


def _is_true(value: str) -> bool:
    return value.lower() in _TRUE


def _is_not_zero(value: str) -> bool:
    return value.strip() not in ("", "0")


def _is_detail(value: str) -> bool:
    return value.upper() == "DETAIL"


_APPLIES: Mapping[str, Callable[[str], bool]] = {
    "CUDA_LAUNCH_BLOCKING": _is_not_zero,
    "TORCH_DISTRIBUTED_DEBUG": _is_detail,
}


def distorting(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the variables of this environment that make NCCL's calls slower than the network and the GPUs are."""
    return tuple(
        name for name in DISTORTING if name in environment and _APPLIES.get(name, _is_true)(environment[name])
    )
