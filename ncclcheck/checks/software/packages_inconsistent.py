"""NC513 packages-inconsistent."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.images import judged
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.finding import Evidence, Finding, Fix
from ncclcheck.model.snapshot import Node, Snapshot

_OF_GPUS = ("torch", "nvidia-", "numpy", "triton")
_MOST = 12


@check(
    "NC513",
    "packages-inconsistent",
    "The Python packages of the image fit each other and can be imported",
    needs=("image",),
    image="only",
)
def packages_inconsistent(snapshot: Snapshot) -> Iterator[Answer]:
    """pip's own check finds no package that lacks another or has it in a version that it does not take.

    And torch, numpy, NVML's package and what ncclcheck itself needs can be imported in a new interpreter. A complaint
    about torch or one of NVIDIA's packages is an error, any other a warning.

    ## Why it matters
    A `pip install` late in a Dockerfile replaces a package that torch was installed with (nvidia-nccl, nvidia-cudnn,
    numpy), and says so in a line that nobody reads. The image then differs from what was tested, or fails at import.

    ## How to fix
    Install everything in one `pip install`, or with the constraints of the base image (`pip install -c`), and let
    `pip check` end the build.

    ## Source
    `python -m pip check` with the interpreter that runs ncclcheck; the imports.
    """
    yield from judged(snapshot, "the packages", lambda image: image.packages, _pip)
    yield from judged(snapshot, "the imports", lambda image: image.imports, _imports)


def _pip(node: Node, problems: tuple[str, ...]) -> Iterator[Answer]:
    grave = [line for line in problems if _is_grave(line)]
    for severe, lines in ((True, grave), (False, [line for line in problems if line not in grave])):
        if lines:
            yield Finding(
                "error" if severe else "warning",
                f"pip's own check complains about the image on {node.host}: {lines[0]}"
                + (f" (and {len(lines) - 1} more)" if len(lines) > 1 else "")
                + ": what was tested is not what is installed",
                (node.host,),
                tuple(
                    Evidence((node.host,), "pip check", line, "no complaint", "python -m pip check")
                    for line in lines[:_MOST]
                ),
                (
                    Fix(
                        "install what fits, and end the build where it does not",
                        (
                            "python -m pip check",
                            "RUN python -m pip check   # at the end of the Dockerfile",
                        ),
                    ),
                ),
            )


def _is_grave(line: str) -> bool:
    """True of `torch 2.9.0 has requirement nvidia-nccl-cu12==2.27.5, but you have nvidia-nccl-cu12 2.28.9.`."""
    return any(word.lower().startswith(_OF_GPUS) for word in line.replace(",", " ").split())


def _imports(node: Node, failed: dict[str, str]) -> Iterator[Answer]:
    for module, why in failed.items():
        yield Finding(
            "error",
            f"{module} cannot be imported in the image on {node.host}: {why}",
            (node.host,),
            (Evidence((node.host,), f"import {module}", why, "is imported", "a new interpreter"),),
            (Fix("install it again", (f"python -c 'import {module}'",)),),
        )
