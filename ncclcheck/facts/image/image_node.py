"""The facts of a container image, in the place of those of a node."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from ncclcheck.facts.bounded_call import start
from ncclcheck.facts.image.image_facts import ImageRequest, read_image
from ncclcheck.facts.kept_environment import read_environment
from ncclcheck.facts.nccl.nccl_choice import read_nccl
from ncclcheck.facts.node_facts import nccl_version
from ncclcheck.facts.software.software import read_software
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import NcclChoice, NodeFacts, Software
from ncclcheck.model.image import Image
from ncclcheck.timeouts import IMAGE_NCCL_S

_NOT_IN_IMAGE = Missing("absent", "an image has none of its own: it is what the node has that runs it")


def image_facts(environ: Mapping[str, str], deadline_s: float) -> NodeFacts:
    """Return what can be known of an image; every section that only a node has is Missing and says so."""
    image_read = start(read_image, ImageRequest(environ, deadline_s=deadline_s))
    nccl_read = start(read_nccl, environ, min(IMAGE_NCCL_S, deadline_s))
    image = image_read.result(deadline_s + 1.0)
    nccl = nccl_read.result(1.0)
    software = read_software(nccl_version(nccl))
    nothing = NodeFacts(**dict.fromkeys(NodeFacts.__struct_fields__, _NOT_IN_IMAGE))
    return replace(
        nothing,
        environment=read_environment(environ),
        software=_with_build(software, image),
        nccl=_without_network(nccl),
        image=image,
    )


def _with_build(software: Software, image: Fact[Image]) -> Software:
    """Add the NCCL that torch was compiled with, where no package says it: of NVIDIA's images, or self-built."""
    if isinstance(image, Missing) or isinstance(image.torch, Missing):
        return software
    compiled = image.torch.nccl
    if isinstance(software.torch_nccl, Missing) and not isinstance(compiled, Missing):
        return replace(software, torch_nccl=compiled)
    return software


def _without_network(nccl: Fact[NcclChoice]) -> Fact[NcclChoice]:
    """Drop what the library chose on the build machine: only which libraries there are says something about a node."""
    return nccl if isinstance(nccl, Missing) else replace(nccl, asked=_NOT_IN_IMAGE)
