"""NC514 cuda-stub."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.images import judged
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import Evidence, Finding, Fix, Severity
from ncclcheck.model.image import DriverLibrary
from ncclcheck.model.snapshot import Node, Snapshot

_WORDS: dict[str, tuple[Severity, str, str]] = {
    "stub": (
        "error",
        "is a stub, which is only for linking: a program that loads it instead of the driver's "
        "library gets error 34, 'CUDA driver is a stub library'",
        "remove the folder stubs from LD_LIBRARY_PATH and /etc/ld.so.conf.d; pass it to the linker "
        "with -L while the image is built",
    ),
    "compat": (
        "info",
        "is from CUDA's forward compatibility package: it works only on data-centre GPUs and with "
        "an older driver; otherwise CUDA ends with error 804",
        "remove it from LD_LIBRARY_PATH: NVIDIA's container runtime uses the folder compat where it is needed",
    ),
    "driver": (
        "warning",
        "belongs to one driver version: a node with another driver fails with 'driver/library version "
        "mismatch'",
        "remove the driver packages (libnvidia-compute, cuda-drivers) from the image: the runtime mounts the host's",
    ),
}


@check(
    "NC514",
    "cuda-stub",
    "No library in the image hides the host's NVIDIA driver libraries",
    needs=("image",),
    image="only",
)
def cuda_stub(snapshot: Snapshot) -> Iterator[Answer]:
    """The loader finds no stub, no forward compatibility library and no real libcuda or libnvidia-ml in the image.

    ## Why it matters
    The container runtime mounts the driver's libraries of the host. A library in the image that is found first
    replaces them: a stub (.../lib64/stubs, added to LD_LIBRARY_PATH for linking) makes every CUDA call fail.

    ## How to fix
    Keep such folders out of LD_LIBRARY_PATH and of the loader's cache of the finished image.

    ## Source
    The folders of ld.so(8); CUDA Runtime API, cudaErrorStubLibrary (34) and cudaErrorCompatNotSupportedOnDevice (804);
    NVIDIA CUDA Compatibility. A library of less than 512 KiB is taken for a stub: the driver's have megabytes.
    """
    yield from judged(snapshot, "the driver's libraries", lambda image: image.driver_libraries, _judge)


def _judge(node: Node, libraries: tuple[DriverLibrary, ...]) -> Iterator[Answer]:
    for library in libraries:
        if library.kind == "driver" and _has_driver(node):
            continue  # mounted by the runtime of a build machine with a GPU
        severity, why, fix = _WORDS[library.kind]
        yield Finding(
            severity,
            f"{library.path} in the image on {node.host} {why}",
            (node.host,),
            (
                Evidence(
                    (node.host,),
                    library.path,
                    f"a {library.kind} library",
                    "only the host's, at run time",
                    library.found_by,
                ),
            ),
            (Fix(fix, ("echo $LD_LIBRARY_PATH", "ldconfig -p | grep -E 'libcuda|libnvidia-ml'")),),
        )


def _has_driver(node: Node) -> bool:
    software = node.facts.software
    return not isinstance(software, Missing) and not isinstance(software.driver, Missing)
