"""What NCCL's own manual warns of so that it is not tried: values that hide a fault, may hang, or cannot be.

Source: docs/userguide/source/env.rst of NVIDIA/nccl, commit 0186f08d (2.30.7). LL128, which depends on the nodes, is in
`trying` and `ll128`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct

from ncclcheck.nccl import versions
from ncclcheck.nccl.number import strtoll
from ncclcheck.nccl.variables.variables import TABLE
from ncclcheck.nccl.variables.variables_values import misread

_MOST_SOCKETS = 64  # NCCL_SOCKET_NTHREADS times NCCL_NSOCKS_PERTHREAD
_LONGEST_TIMEOUT = 31  # five bits


class _Rule(Struct, frozen=True):
    """Which values of a variable are not tried, and what the manual says of them."""

    is_meant: Callable[[int], bool]
    says: str


_RULES: Mapping[str, _Rule] = {
    "NCCL_IB_TIMEOUT": _Rule(
        lambda value: value == 0 or value > _LONGEST_TIMEOUT,
        '"a value of 0 or >= 32 will result in an infinite timeout": a dead link would never be noticed',
    ),
    "NCCL_LEGACY_CUDA_REGISTER": _Rule(
        bool, 'registering such buffers "is unsafe and can possibly cause a hang for NCCL"'
    ),
    "NCCL_MULTI_RANK_GPU_ENABLE": _Rule(
        bool, 'it is experimental, lets ranks share a GPU, and "may exhaust resources and lock NCCL"'
    ),
    "NCCL_IGNORE_COLLNET_MISMATCH": _Rule(
        bool, 'it hides what "typically indicates a misconfiguration that can lead to failures"'
    ),
    "NCCL_GRAPH_STREAM_ORDERING": _Rule(
        lambda value: value == 0,
        "the program then has to order all communication of a GPU itself; it has no effect outside of CUDA graphs",
    ),
    "NCCL_GRAPH_MIXING_SUPPORT": _Rule(
        lambda value: value == 0, "calls beside a running CUDA graph of the same communicator are then not supported"
    ),
}  # fmt: skip


def forbidden(arm: Mapping[str, str]) -> str:
    """Return why NCCL's manual, or its reading of a value, speaks against trying this; empty where nothing does."""
    for name, value in arm.items():
        rule, number = _RULES.get(name), _number(value)
        if rule is not None and number is not None and rule.is_meant(number):
            return f"{name}={value} is not tried: NCCL's manual: {rule.says}"
        variable = TABLE.get(name)
        if variable is None or variable.owner != "NCCL":
            continue
        misreading = misread(variable, value, versions.NEWEST, arm)
        if misreading is not None and misreading.weight != "info":
            return f"{name}={value} is not tried: the value {misreading.what}"
    return _too_many_sockets(arm)


def _too_many_sockets(arm: Mapping[str, str]) -> str:
    numbers = [_number(arm.get(name, "1")) for name in ("NCCL_SOCKET_NTHREADS", "NCCL_NSOCKS_PERTHREAD")]
    threads, sockets = (number or 1 for number in numbers)
    if threads * sockets <= _MOST_SOCKETS:
        return ""
    return (
        f"{threads} threads with {sockets} sockets each are not tried: NCCL's manual: the product of "
        f'NCCL_SOCKET_NTHREADS and NCCL_NSOCKS_PERTHREAD "cannot exceed {_MOST_SOCKETS}"'
    )


def _number(value: str) -> int | None:
    parsed = strtoll(value)
    return parsed.value if parsed.is_number else None
