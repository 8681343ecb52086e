"""The shape of a transformer, from which the sizes of its collectives follow."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

Strategy: TypeAlias = Literal["fsdp", "megatron"]


class ModelShape(Struct, frozen=True, forbid_unknown_fields=True):
    """What a `config.json` says of a model. `experts` 0: none; then `ffn` is that of every layer.

    `gated`: the feed-forward part has three matrices (SwiGLU), not two. `tied`: one matrix is embedding and output.
    """

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocabulary: int
    gated: bool
    tied: bool
    element_bytes: int
    experts: int = 0
    experts_per_token: int = 0


class ModelRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """The model of the job, and how it is trained: one micro batch of `batch` sequences of `sequence` tokens."""

    shape: ModelShape
    batch: int = 1
    sequence: int = 4096
    strategy: Strategy = "fsdp"
