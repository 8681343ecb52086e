"""NC508 arch-not-built."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from msgspec import Struct

from ncclcheck.checks.expectations import demands_on
from ncclcheck.checks.gpus import by_text, closing, label
from ncclcheck.checks.hosts import named
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.finding import Evidence, Finding, Fix, NotApplicable, NotKnown
from ncclcheck.model.policy.expected import Text
from ncclcheck.model.snapshot import Node, Snapshot

_FLAG = re.compile(r"(?P<kind>sm|compute)_(?P<digits>\d{2,3})(?P<only>[af]?)", re.ASCII)
_EXPECTED = "gpu.compute_capability"
_ASK = ("python -c 'import torch; print(torch.cuda.get_arch_list())'",)


class _Pair(Struct, frozen=True):
    """A GPU that is there or expected, and what the torch of its node was built for."""

    node: Node
    gpu: str
    capability: str
    built: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.gpu}, torch has {', '.join(self.built) or 'nothing'}"


@check(
    "NC508",
    "arch-not-built",
    "torch has code for the GPUs of every node",
    image=True,
    alike=("gpus", "image", "pci", "torch_gpus"),
    by_node=True,
)
def arch_not_built(snapshot: Snapshot) -> Iterator[Answer]:
    """For each GPU torch has machine code of its architecture, or PTX that the driver can compile.

    GPUs that the policy expects (`gpu.compute_capability` of --expect) are judged too.

    Machine code (sm_XY) runs on GPUs of the same major version and at least that minor one; sm_XYa only on exactly that
    one, sm_XYf on its family. PTX (compute_XY) runs on every newer GPU, but the driver must be as new as torch's CUDA,
    and compiles at the first start. Of an image (`--image`) the GPUs are those of `[gpu] compute_capability` of the
    policy.

    ## Why it matters
    "no kernel image is available for execution on the device" at the first operation, on the nodes with other GPUs.

    ## How to fix
    Install a torch that was built for these GPUs: newer GPUs need a newer CUDA.

    ## Source
    torch.cuda.get_arch_list, NVML (nvmlDeviceGetCudaComputeCapability); CUDA C++ Programming Guide: binary and PTX
    compatibility; NVIDIA CUDA Compatibility (no PTX of a newer minor version).
    """
    none: list[tuple[str, str]] = []
    compiled: list[tuple[str, str]] = []
    judged = False
    for answer in (*_expected(snapshot), *_present(snapshot)):
        if isinstance(answer, NotKnown):
            yield answer
            continue
        judged = True
        if not runs_machine_code(answer.capability, answer.built):
            is_compiled = runs_ptx(answer.capability, answer.built) and _can_compile(answer.node)
            (compiled if is_compiled else none).append((answer.node.host, str(answer)))
    for text, hosts in by_text(none):
        summary = f"torch on {named(hosts)} has no code for its GPUs: {text}: the first operation fails"
        yield _finding("error", summary, hosts, text)
    for text, hosts in by_text(compiled):
        summary = (
            f"torch on {named(hosts)} has only PTX for its GPUs: {text}: the first start compiles for minutes"
        )
        yield _finding("warning", summary, hosts, text)
    if snapshot.of == "image":
        yield from _of_image(snapshot)
        return
    yield from closing(snapshot, judged, "is present that torch was built for")


def _of_image(snapshot: Snapshot) -> Iterator[Answer]:
    """The GPUs of an image are those that its policy is for."""
    demanded = [
        expectation
        for expectation in snapshot.expected.expectations
        if expectation.key == "gpu.compute_capability"
    ]
    if not demanded:
        yield NotApplicable(
            "no policy says for which GPUs the image is: [gpu] compute_capability in --expect"
        )
    for node, image in snapshot.known("image"):
        built = image.torch if isinstance(image.torch, Missing) else image.torch.architectures
        if isinstance(built, Missing) and built.missing != "absent":
            yield NotKnown(f"architectures of torch: {built}", (node.host,))
            continue
        flags = () if isinstance(built, Missing) else built
        for demand in demanded:
            for capability in demand.wanted.any_of if isinstance(demand.wanted, Text) else ():
                if not runs_machine_code(capability, flags):
                    yield _lacking(node, capability, flags, demand.source)


def _lacking(node: Node, capability: str, built: tuple[str, ...], policy: str) -> Finding:
    text = f"the policy is for {capability} ({policy}), torch has {', '.join(built) or 'nothing'}"
    if runs_ptx(capability, built):
        summary = (
            f"torch of the image on {node.host} has only PTX for its GPUs: {text}: starts compile for minutes"
        )
        return _finding("warning", summary, (node.host,), text)
    summary = f"torch of the image on {node.host} has no code for its GPUs: {text}: the first operation fails"
    return _finding("error", summary, (node.host,), text)


def _built(node: Node) -> Fact[tuple[str, ...]]:
    torch = node.facts.torch_gpus
    return torch if isinstance(torch, Missing) else torch.architectures


def _present(snapshot: Snapshot) -> Iterator[_Pair | NotKnown]:
    """Each GPU that the drivers list."""
    for node, gpus in snapshot.known("gpus"):
        built = _built(node)
        if isinstance(built, Missing):
            if gpus:
                yield NotKnown(f"architectures of torch: {built}", (node.host,))
            continue
        for gpu in gpus:
            capability = gpu.state.compute_capability
            if isinstance(capability, Missing):
                yield NotKnown(f"compute capability of GPU {gpu.index}: {capability}", (node.host,))
            else:
                yield _Pair(node, f"{label(gpu)} is of {capability}", capability, built)


def _expected(snapshot: Snapshot) -> Iterator[_Pair | NotKnown]:
    """The compute capabilities that a policy expects of each node's GPUs, with the place that says so."""
    for node in snapshot.nodes if snapshot.of == "nodes" else ():
        demands, _ = demands_on(node, snapshot.expected)
        expectations = [
            demand for demand in demands if demand.key == _EXPECTED and isinstance(demand.wanted, Text)
        ]
        built = _built(node)
        if expectations and isinstance(built, Missing):
            yield NotKnown(f"architectures of torch: {built}", (node.host,))
            continue
        for expectation in expectations:
            for capability in expectation.wanted.any_of if isinstance(expectation.wanted, Text) else ():
                text = f"GPUs of {capability} are expected ({expectation.source})"
                yield _Pair(node, text, capability, () if isinstance(built, Missing) else built)


def _finding(severity: str, summary: str, hosts: tuple[str, ...], text: str) -> Finding:
    return Finding(
        "error" if severity == "error" else "warning",
        summary,
        hosts,
        (
            Evidence(
                hosts, "architectures", text, "machine code for each GPU", "NVML; torch.cuda.get_arch_list()"
            ),
        ),
        (Fix("install a torch that was built for these GPUs", _ASK),),
    )


def runs_machine_code(capability: str, built: Iterable[str]) -> bool:
    """Is there machine code that a GPU of this compute capability runs?"""
    major, minor = _numbers(capability)
    for flag in built:
        match = _FLAG.fullmatch(flag)
        if match is None or match["kind"] != "sm":
            continue
        of_major, of_minor = divmod(int(match["digits"]), 10)
        if (major, minor) == (of_major, of_minor) or (
            match["only"] != "a" and major == of_major and minor >= of_minor
        ):
            return True
    return False


def runs_ptx(capability: str, built: Iterable[str]) -> bool:
    """Is there PTX that can be compiled for a GPU of this compute capability?"""
    major, minor = _numbers(capability)
    flags = (_FLAG.fullmatch(flag) for flag in built)
    return any(
        match is not None
        and match["kind"] == "compute"
        and (
            divmod(int(match["digits"]), 10) == (major, minor)
            if match["only"]
            else divmod(int(match["digits"]), 10) <= (major, minor)
        )
        for match in flags
    )


def _can_compile(node: Node) -> bool:
    """The driver compiles PTX only of a CUDA that is not newer than its own; where that is not known, it may."""
    software, driver = node.facts.software, node.facts.gpu_driver
    if isinstance(software, Missing) or isinstance(driver, Missing):
        return True
    if isinstance(software.torch_cuda, Missing) or isinstance(driver.cuda, Missing):
        return True
    return _numbers(driver.cuda) >= _numbers(software.torch_cuda)


def _numbers(text: str) -> tuple[int, int]:
    parts = [int(part) for part in text.split(".")[:2] if part.isdigit()]
    return (parts[0], parts[1] if len(parts) > 1 else 0) if parts else (0, 0)
