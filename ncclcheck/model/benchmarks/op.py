"""The collectives and backends by name: part of every report."""

from __future__ import annotations

from typing import Literal, TypeAlias

Backend: TypeAlias = Literal["gloo", "nccl"]
Op: TypeAlias = Literal[
    "all_reduce",
    "all_gather",
    "reduce_scatter",
    "all_to_all",
    "broadcast",
    "reduce",
    "gather",
    "scatter",
    "send_recv",
]
