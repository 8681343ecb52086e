"""A healthy container image as a Snapshot, and functions that break one thing of it."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import NodeFacts
from ncclcheck.model.image import Examined, Image, Libraries, TorchBuild, Verbs
from ncclcheck.model.snapshot import Node, Snapshot
from tests.fact_builders import answer, nccl_choice, software

HOST = "builder"
NOT_IN_IMAGE = Missing("absent", "an image has none of its own")
TORCH = Examined("torch", "/opt/venv/lib/torch/lib/libtorch_cuda.so")
PROVIDER = "/usr/lib/x86_64-linux-gnu/libibverbs/libmlx5-rdmav34.so"


def healthy_image(**changes: Any) -> Snapshot:
    """An image with torch, NCCL and verbs; `changes` are parts of its section `image`."""
    image = Image(
        libraries=Libraries((TORCH,), ()),
        torch=TorchBuild("12.8", "2.27.5", ("sm_80", "sm_90", "compute_90")),
        imports={},
        packages=(),
        verbs=Verbs("/usr/lib/libibverbs.so.1", "1.14.44.0", 34, (PROVIDER,), ("mlx5",)),
        driver_libraries=(),
        limits=(),
    )
    facts = NodeFacts(**dict.fromkeys(NodeFacts.__struct_fields__, NOT_IN_IMAGE))
    facts = replace(
        facts,
        environment={"NCCL_DEBUG": "WARN"},
        software=software(driver=Missing("absent", "no driver")),
        nccl=replace(nccl_choice(answer("10.0.0.1", "eth0")), asked=NOT_IN_IMAGE),
        image=replace(image, **changes),
    )
    return Snapshot(nodes=(Node(HOST, 0, facts),), of="image")


def with_sections(snapshot: Snapshot, **sections: Any) -> Snapshot:
    """The snapshot in which the image says something else in those sections."""
    (node,) = snapshot.nodes
    return replace(snapshot, nodes=(replace(node, facts=replace(node.facts, **sections)),))
