"""Collects the facts of this node: all sections at once, each under the deadline, a failed one as a Missing."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from msgspec.structs import replace

from ncclcheck.facts.bounded_call import Started
from ncclcheck.facts.section import FactsRequest, Section
from ncclcheck.facts.section_registry import all_sections
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import NcclChoice, NodeFacts
from ncclcheck.model.gpu import TorchGpus


def collect(request: FactsRequest) -> NodeFacts:
    """Return every section but `routes`, `master` and `image` after at most `deadline_s`; a late one is "timeout"."""
    readers = [(section, partial(section.read, request)) for section in all_sections()]
    facts = NodeFacts(launch=request.launch, **read_all(readers, request.deadline_s))
    if isinstance(facts.software, Missing):
        return facts
    torch_nccl = compiled_nccl(facts.software.torch_nccl, facts.torch_gpus)
    return replace(
        facts, software=replace(facts.software, nccl=nccl_version(facts.nccl), torch_nccl=torch_nccl)
    )


def read_all(readers: Sequence[tuple[Section, Callable[[], Any]]], deadline_s: float) -> dict[str, Any]:
    """Return the sections by name, all read at once; Missing for one that fails or is not there by the deadline."""
    end = time.monotonic() + deadline_s
    started = [(section, Started(read, f"read_{next(iter(section.sources))}")) for section, read in readers]
    values: dict[str, Any] = {}
    for section, reading in started:
        values |= section.by_name(reading.result(end - time.monotonic()))
    return values


def nccl_version(choice: Fact[NcclChoice]) -> Fact[str]:
    """Return the version of the library, or why there is none."""
    if isinstance(choice, Missing):
        return choice
    return choice.asked if isinstance(choice.asked, Missing) else choice.asked.version


def compiled_nccl(pinned: Fact[str], torch: Fact[TorchGpus]) -> Fact[str]:
    """Return the NCCL that torch was compiled with: as its package pins it, else as torch itself says.

    The torch of NVIDIA's containers, of conda and of a build from source pins no NCCL package and has NCCL.
    """
    if isinstance(pinned, str) or pinned.missing != "unsupported":
        return pinned  # pinned, or known to be without CUDA
    if not isinstance(torch, Missing):
        return torch.nccl
    if torch.missing == "absent":  # no GPU to ask for
        return pinned
    return Missing(torch.missing, f"this torch pins no NCCL package, and did not answer: {torch.detail}")
