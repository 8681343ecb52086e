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
    "The Python packages of the image are compatible and can be imported",
    needs=("image",),
    image="only",
)
def packages_inconsistent(snapshot: Snapshot) -> Iterator[Answer]:
    """`pip check` finds no missing or incompatible package.

    A new interpreter can import torch, numpy, NVML's package and the dependencies of ncclcheck. A problem with torch
    or one of NVIDIA's packages is an error, any other a warning.

    ## Why it matters
    A `pip install` late in a Dockerfile replaces a package that torch was installed with (nvidia-nccl, nvidia-cudnn,
    numpy), and reports it in a line that is easily missed. The image then differs from what was tested, or fails at
    import.

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
                f"`pip check` reports problems in the image on {node.host}: {lines[0]}"
                + (f" (and {len(lines) - 1} more)" if len(lines) > 1 else "")
                + ": the installed packages are not those that were tested",
                (node.host,),
                tuple(
                    Evidence((node.host,), "pip check", line, "no problem", "python -m pip check")
                    for line in lines[:_MOST]
                ),
                (
                    Fix(
                        "install compatible packages, and fail the build if they are not",
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
