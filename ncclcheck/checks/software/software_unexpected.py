"""NC510 software-unexpected."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ncclcheck.checks.expectations import Reader, Seen, or_nothing, unexpected
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import Software
from ncclcheck.model.policy.expected import Expectation
from ncclcheck.model.snapshot import Node, Snapshot


def _version(name: str, read: Callable[[Software], Fact[str]], source: str) -> Reader:
    def reader(node: Node, expectation: Expectation) -> Iterator[Seen]:
        del expectation
        software = node.facts.software
        value = software if isinstance(software, Missing) else or_nothing(read(software))
        yield Seen(name, value, source)

    return reader


# By the key of the policy; what is seen here is also what `facts --as-policy` writes.
READERS: dict[str, Reader] = {
    "versions.torch": _version("torch", lambda software: software.torch, "torch/version.py"),
    "versions.cuda": _version("the CUDA of torch", lambda software: software.torch_cuda, "torch/version.py"),
    "versions.nccl": _version(
        "NCCL", lambda software: software.nccl, "ncclGetVersion of the library that torch would load"
    ),
    "versions.python": _version("Python", lambda software: software.python, "platform.python_version()"),
    "versions.ncclcheck": _version("ncclcheck", lambda software: software.ncclcheck, "ncclcheck itself"),
}


@check(
    "NC510",
    "software-unexpected",
    "torch, its CUDA, NCCL, Python and ncclcheck have the versions that the policy requires",
    image=True,
    demands=tuple(READERS),
)
def software_unexpected(snapshot: Snapshot) -> Iterator[Answer]:
    """torch, cuda, nccl, python and ncclcheck have the versions in `[versions]` of the policy (`--expect`).

    A version alone must be that version; a range is one of PEP 440 (`>=2.27,<2.30`, `==2.9.*`). What could not be read
    is unknown, and the run then ends with exit code 3.

    ## Why it matters
    A policy lists what was tested. Another version may be fine, or may be why the job hangs on these nodes only.

    ## How to fix
    Use the image or environment that the policy was written for, or correct the policy. The finding names the line.

    ## Source
    The policy, by file and line; the versions as each part says them itself; PEP 440 as in the library `packaging`.
    """
    yield from unexpected(snapshot, READERS, "install what the policy requires")
