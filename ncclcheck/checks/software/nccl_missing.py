"""NC516 nccl-missing."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.hosts import named
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import Evidence, Finding, Fix, NotKnown
from ncclcheck.model.snapshot import Node, Snapshot
from ncclcheck.nccl.versions import is_version, parse

_ASK = ("python -c 'import torch; print(torch.version.cuda, torch.cuda.nccl.version())'",)


@check(
    "NC516",
    "nccl-missing",
    "The image has a torch with CUDA and the NCCL that it was compiled with",
    needs=("image", "software", "nccl"),
    image="only",
)
def nccl_missing(snapshot: Snapshot) -> Iterator[Answer]:
    """torch was built with CUDA, and loads an NCCL that is not older than the one torch was compiled with.

    ## Why it matters
    A torch from the wrong index has no CUDA, and every job of this image computes on CPUs and communicates with Gloo,
    or fails at init_process_group("nccl"). An NCCL older than the one that torch was compiled with lacks functions
    that torch calls.

    ## How to fix
    Install torch for the CUDA of the cluster (https://pytorch.org/get-started/locally), and no package that replaces
    the nvidia-nccl package it requires.

    ## Source
    torch/version.py; torch.cuda.nccl.version(), a constant of torch's build; ncclGetVersion of the library.
    """
    for node, image in snapshot.known("image"):
        if isinstance(image.torch, Missing):
            yield NotKnown(f"how torch was built: {image.torch}", (node.host,))
        elif isinstance(image.torch.cuda, Missing):
            yield from _without_cuda(node, image.torch.cuda)
        else:
            yield from _with_cuda(node, image.torch.nccl)


def _without_cuda(node: Node, cuda: Missing) -> Iterator[Answer]:
    if cuda.missing != "absent":
        yield NotKnown(f"the CUDA of torch: {cuda}", (node.host,))
        return
    yield Finding(
        "warning",
        f"torch of the image on {node.host} was built without CUDA: jobs use CPUs and Gloo, not NCCL",
        (node.host,),
        (Evidence((node.host,), "CUDA of torch", "none", "a version", "torch/version.py"),),
        (
            Fix(
                "install a torch with CUDA; for an image without GPUs, ignore this check in its policy",
                ("pip install torch --index-url https://download.pytorch.org/whl/cu128", *_ASK),
            ),
        ),
    )


def _with_cuda(node: Node, compiled: object) -> Iterator[Answer]:
    nccl = node.facts.nccl
    if isinstance(nccl, Missing) or isinstance(nccl.libraries, Missing):
        why = nccl if isinstance(nccl, Missing) else nccl.libraries
        yield NotKnown(f"which NCCL libraries there are: {why}", (node.host,))
        return
    loaded = next((library for library in nccl.libraries if library.loaded_by_torch), None)
    if loaded is None:
        yield _finding(node.host, "torch finds no NCCL library", "none", str(compiled))
    elif isinstance(loaded.version, Missing) and loaded.version.missing in ("error", "unsupported"):
        error_text = loaded.version.detail.removeprefix(f"{loaded.path}: ")
        what = f"the NCCL that torch loads does not work: {loaded.path} {error_text}"
        yield _finding(node.host, what, error_text, "a library that can be loaded and says its version")
    elif isinstance(loaded.version, Missing):
        yield NotKnown(f"the version of {loaded.path}: {loaded.version}", (node.host,))
    elif not isinstance(compiled, str):
        yield NotKnown(f"the NCCL torch was compiled with: {compiled}", (node.host,))
    elif is_version(compiled) and parse(loaded.version) < parse(compiled):
        what = f"torch loads NCCL {loaded.version} ({loaded.path}), and was compiled with {compiled}"
        yield _finding(node.host, what, loaded.version, f"{compiled} or newer")


def _finding(host: str, what: str, observed: str, expected: str) -> Finding:
    return Finding(
        "error",
        f"in the image on {named((host,))} {what}: no job of several GPUs starts with it",
        (host,),
        (
            Evidence(
                (host,),
                "NCCL that torch loads",
                observed,
                expected,
                "ncclGetVersion; torch.cuda.nccl.version()",
            ),
        ),
        (
            Fix(
                "install the NCCL package that torch requires", ("pip install --force-reinstall torch", *_ASK)
            ),
        ),
    )
