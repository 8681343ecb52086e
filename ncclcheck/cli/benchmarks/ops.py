"""The collectives that --ops names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from ncclcheck.model.bench import Op
from ncclcheck.model.errors import UsageError


def given_ops(option_values: Mapping[str, Any]) -> tuple[Op, ...]:
    """Return the collectives of --ops; none where it was not given. Raises UsageError."""
    known: tuple[Op, ...] = get_args(Op)
    ops: list[Op] = []
    for name in [name for names in option_values.get("ops") or () for name in names]:
        plain = name.lower().replace("-", "").replace("_", "")  # nccl-tests and its users write allreduce
        matching = [op for op in known if plain in (op.replace("_", ""), "all")]
        if not matching:
            raise UsageError(f"--ops {name!r}: this version measures {' and '.join(known)}")
        ops += matching
    return tuple(dict.fromkeys(ops))
