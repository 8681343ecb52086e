"""Which collectives one step of a model makes in the groups of a mesh, how often, and of which size.

One step is one micro batch, forward and backward, and one exchange of the gradients. The sizes are those of nccl-tests:
of an all_gather what is received in all, of a reduce_scatter or all_to_all what a rank sends in all. docs/bench.md has
the rules as a table, with the source of each.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from msgspec import Struct

from ncclcheck.measure.mesh.groups import group_sizes
from ncclcheck.model.benchmarks.mesh import Mesh
from ncclcheck.model.benchmarks.mesh_bench import MeshCall
from ncclcheck.model.benchmarks.model_shape import ModelRequest, ModelShape

_TENSOR, _DATA = ("tp", "tensor", "mp"), ("dp", "dp_shard", "fsdp", "data")
_REPLICATED, _PIPELINE = ("dp_replicate", "ddp"), ("pp", "pipe")
_CONTEXT, _EXPERT = ("cp", "context"), ("ep", "expert")
_GRADIENT_BYTES = 4  # both add gradients up in float32 by default
_BUCKET, _BUCKET_PER_RANK = (
    40_000_000,
    1_000_000,
)  # parameters (megatron/core/distributed/distributed_data_parallel.py)


class _Part(Struct, frozen=True):
    """The part of the model that a rank has, and the ranks of each kind of dimension."""

    request: ModelRequest
    tensor: int
    pipeline: int
    context: int
    data: int

    @property
    def shape(self) -> ModelShape:
        return self.request.shape

    @property
    def layers(self) -> int:
        return ceil(self.shape.layers / self.pipeline)

    @property
    def activation_bytes(self) -> int:
        """Of one micro batch between two layers, on all ranks of a tensor-parallel group together."""
        tokens = self.request.batch * self.request.sequence // self.context
        return tokens * self.shape.hidden * self.shape.element_bytes


def step_calls(request: ModelRequest, mesh: Mesh) -> tuple[MeshCall, ...]:
    """Return the calls of one step, in the order in which a step comes to them first."""
    sizes = {name: size for name, size in group_sizes(mesh).items() if size > 1}

    def ranks(names: tuple[str, ...]) -> int:
        return next((size for name, size in sizes.items() if name.lower() in names), 1)

    part = _Part(request, ranks(_TENSOR), ranks(_PIPELINE), ranks(_CONTEXT), ranks(_DATA))
    rules = (
        (_DATA, _fsdp if request.strategy == "fsdp" else _megatron),
        (_TENSOR, _tensor),
        (_CONTEXT, _context),
        (_EXPERT, _expert),
        (_PIPELINE, _pipeline),
        (_REPLICATED, _replicated),
    )
    return tuple(
        call
        for names, rule in rules
        for name in sizes
        if name.lower() in names
        for call in rule(name, part)
        if call.per_step and call.size_bytes
    )


def unruled(mesh: Mesh) -> tuple[str, ...]:
    """Return the dimensions of which no rule knows what a model does in them."""
    known = (*_TENSOR, *_DATA, *_REPLICATED, *_PIPELINE, *_CONTEXT, *_EXPERT)
    return tuple(name for name, size in group_sizes(mesh).items() if size > 1 and name.lower() not in known)


def layer_parameters(shape: ModelShape) -> int:
    """Return the parameters of one layer, without its experts: these have groups of their own.

    Attention: Q and output of all heads, K and V of the heads that they have. Feed-forward: two matrices, or three
    where it is gated. Two norms. A layer with experts has the router instead of the feed-forward part.
    """
    attention = 2 * shape.hidden * shape.head_dim * (shape.heads + shape.kv_heads)
    forward = (3 if shape.gated else 2) * shape.hidden * shape.ffn
    return attention + (shape.hidden * shape.experts if shape.experts else forward) + 2 * shape.hidden


def _embeddings(part: _Part) -> tuple[int, int]:
    """Return the parameters of an embedding on a rank, and how many a stage has: with stages at most one."""
    count = 1 if part.shape.tied or part.pipeline > 1 else 2
    return part.shape.vocabulary * part.shape.hidden // part.tensor, count


def _fsdp(name: str, part: _Part) -> Iterator[MeshCall]:
    width, layer = part.shape.element_bytes, layer_parameters(part.shape) // part.tensor
    embedding, count = _embeddings(part)
    yield MeshCall(name, "all_gather", width * layer, 2 * part.layers, "parameters of a layer")
    yield MeshCall(name, "reduce_scatter", _GRADIENT_BYTES * layer, part.layers, "gradients of a layer")
    yield MeshCall(name, "all_gather", width * embedding, 2 * count, "parameters of an embedding")
    yield MeshCall(name, "reduce_scatter", _GRADIENT_BYTES * embedding, count, "gradients of an embedding")


def _megatron(name: str, part: _Part) -> Iterator[MeshCall]:
    embedding, count = _embeddings(part)
    total = part.layers * (layer_parameters(part.shape) // part.tensor) + count * embedding
    buckets = ceil(total / max(_BUCKET, _BUCKET_PER_RANK * part.data))
    bucket = total // buckets
    yield MeshCall(name, "reduce_scatter", _GRADIENT_BYTES * bucket, buckets, "gradients of a bucket")
    yield MeshCall(name, "all_gather", part.shape.element_bytes * bucket, buckets, "parameters of a bucket")


def _replicated(name: str, part: _Part) -> Iterator[MeshCall]:
    layer = layer_parameters(part.shape) // part.tensor // part.data
    embedding, count = _embeddings(part)
    yield MeshCall(name, "all_reduce", _GRADIENT_BYTES * layer, part.layers, "gradients of a layer")
    embedding_bytes = _GRADIENT_BYTES * embedding // part.data
    yield MeshCall(name, "all_reduce", embedding_bytes, count, "gradients of an embedding")


def _tensor(name: str, part: _Part) -> Iterator[MeshCall]:
    size = part.activation_bytes
    yield MeshCall(name, "all_gather", size, 6 * part.layers, "activations, sequence parallel")
    yield MeshCall(name, "reduce_scatter", size, 4 * part.layers, "activations, sequence parallel")


def _context(name: str, part: _Part) -> Iterator[MeshCall]:
    heads = max(1, part.shape.kv_heads // part.tensor)
    tokens = part.request.batch * part.request.sequence // part.context
    block = 2 * tokens * heads * part.shape.head_dim * part.shape.element_bytes
    times = 3 * (part.context - 1) * part.layers
    yield MeshCall(name, "send_recv", block, times, "keys and values of a ring step")


def _expert(name: str, part: _Part) -> Iterator[MeshCall]:
    size = part.activation_bytes // part.tensor * part.shape.experts_per_token
    yield MeshCall(name, "all_to_all", size, 4 * part.layers, "tokens to their experts and back")


def _pipeline(name: str, part: _Part) -> Iterator[MeshCall]:
    yield MeshCall(
        name, "send_recv", part.activation_bytes // part.tensor, 2, "activations between two stages"
    )
