"""NC507 driver-too-old."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ncclcheck.checks.hosts import named, not_reported
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.finding import Evidence, Finding, Fix, NotApplicable, NotKnown
from ncclcheck.model.snapshot import Node, Snapshot

_NUMBERS = re.compile(r"\d+(?:\.\d+)*")
# NVIDIA CUDA Compatibility, "Minor Version Compatibility" (docs.nvidia.com/deploy/cuda-compatibility): every CUDA of
# one major version runs with a driver from 450 (11; from 450.80.02, later than CUDA 11.0 itself), 525 (12) or 580
# (13) on. CUDA Toolkit Release Notes, "CUDA Toolkit and Corresponding Driver Versions", Linux: the driver of 12.0 GA is
# 525.60.13, that of 13.0 GA 580.65.06. Before CUDA 11 each minor version has its own. Read 2026-11.
_LEAST_DRIVER: dict[tuple[int, ...], tuple[int, ...]] = {
    (10, 0): (410, 48),
    (10, 1): (418, 39),
    (10, 2): (440, 33),
    (11,): (450, 80, 2),
    (12,): (525, 60, 13),
    (13,): (580, 65, 6),
}


@check(
    "NC507",
    "driver-too-old",
    "The NVIDIA driver can run the CUDA that torch was built with",
    needs=("software",),
)
def driver_too_old(snapshot: Snapshot) -> Iterator[Answer]:
    """The driver supports the major CUDA version of torch or a newer one; torch's minor version may be newer.

    The check uses the libcuda that a program loads on the node, so a forward compatibility package in the container
    counts. If NVML does not report it, the driver version decides.

    ## Why it matters
    "The NVIDIA driver on your system is too old": torch sees no GPU on that node, and its ranks end at once or,
    worse, continue on the CPU.

    ## How to fix
    Update the driver, use a torch that was built with an older CUDA, or (data-centre GPUs only) install the
    cuda-compat package of torch's CUDA.

    ## Source
    NVML (nvmlSystemGetCudaDriverVersion_v2), torch/version.py; NVIDIA CUDA Compatibility: minor version compatibility
    since CUDA 11, forward compatibility; CUDA Toolkit Release Notes: drivers from 450.80.02 run CUDA 11, from 525.60.13
    CUDA 12, from 580.65.06 CUDA 13.
    """
    judged = False
    unknown: dict[bool, list[NotKnown]] = {}  # by: it is known that there is none
    found: dict[tuple[str, str], list[str]] = {}
    for node, software in snapshot.known("software"):
        cuda, has_driver = software.torch_cuda, _has_driver(node)
        if isinstance(cuda, Missing):
            if has_driver or cuda.missing != "absent":
                unknown.setdefault(cuda.missing == "absent", []).append(
                    NotKnown(f"CUDA of torch: {cuda}", (node.host,))
                )
            continue
        if not has_driver:
            continue
        judged = True
        answer = _judge(node, _version(cuda), cuda)
        if isinstance(answer, NotKnown):
            yield answer
        elif answer:
            found.setdefault((cuda, answer), []).append(node.host)
    for (cuda, driver), names in found.items():
        yield _finding(cuda, driver, tuple(names))
    # Where no torch has CUDA the question does not arise; where only some have none, it does.
    yield from (*unknown.get(False, ()), *(unknown.get(True, ()) if judged else ()))
    yield from not_reported(snapshot)
    if not judged:
        yield NotApplicable("no node has both an NVIDIA driver and a torch with CUDA")


def _finding(cuda: str, driver: str, hosts: tuple[str, ...]) -> Finding:
    return Finding(
        "error",
        f"the NVIDIA driver of {named(hosts)} ({driver}) is too old for CUDA {cuda}, which torch was built with: "
        "torch finds no GPU there",
        hosts,
        (
            Evidence(
                hosts,
                "NVIDIA driver",
                driver,
                f"CUDA {cuda.split('.')[0]}.0 or newer",
                "NVML; torch/version.py",
            ),
        ),
        (
            Fix(
                f"update the driver, or install a torch built with a CUDA that it runs ({driver})",
                ("nvidia-smi",),
            ),
        ),
    )


def _has_driver(node: Node) -> bool:
    """False only where it is known that none is there."""
    driver = node.facts.gpu_driver
    return not (isinstance(driver, Missing) and driver.missing == "absent" and _none(node.facts.gpus))


def _none(fact: Fact[object]) -> bool:
    return isinstance(fact, Missing) and fact.missing == "absent"


def _judge(node: Node, needed: tuple[int, ...], cuda: str) -> NotKnown | str:
    """What is too old about the node's driver, or nothing."""
    driver = node.facts.gpu_driver
    libcuda = driver if isinstance(driver, Missing) else driver.cuda
    if not isinstance(libcuda, Missing) and _version(libcuda):
        return f"its CUDA is {libcuda}" if _version(libcuda)[0] < needed[0] else ""
    software = node.facts.software
    version: Fact[str] = software if isinstance(software, Missing) else software.driver
    if isinstance(version, Missing) and not isinstance(driver, Missing):
        version = driver.version
    least = _LEAST_DRIVER.get(needed[:1]) or _LEAST_DRIVER.get(needed[:2])
    if isinstance(version, Missing):
        return NotKnown(f"CUDA of the driver: {libcuda}", (node.host,))
    if least is None:
        return NotKnown(f"which driver CUDA {cuda} needs is not known to this version", (node.host,))
    return f"its version is {version}" if _version(version) < least else ""


def _version(text: str) -> tuple[int, ...]:
    match = _NUMBERS.match(text)
    return tuple(int(part) for part in match[0].split(".")) if match else (0,)
