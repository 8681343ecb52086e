"""Lists the GPUs that the driver knows, through NVML in a child process."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from ncclcheck.facts.child import run_python_child
from ncclcheck.model.codec import decode
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import Gpu


class _Listing(Struct, frozen=True, forbid_unknown_fields=True):
    """The child's message when NVML answered."""

    gpus: tuple[Gpu, ...]


class _Answer(Struct, frozen=True, forbid_unknown_fields=True):
    """The same, or a Missing in its place."""

    answer: Fact[_Listing]


def read_gpus(environ: Mapping[str, str] | None = None, deadline_s: float = 5.0) -> Fact[tuple[Gpu, ...]]:
    """Every GPU of the machine in NVML's order (by PCI address); Missing "absent" where no driver library is.

    CUDA_VISIBLE_DEVICES does not hide GPUs from NVML, so this is what the node has, not what a job was given.
    """
    result = run_python_child("ncclcheck.facts.gpus_child", [], deadline_s=deadline_s, env=environ)
    if isinstance(result, Missing):
        return Missing(result.missing, f"NVML: {result.detail}")
    if result.returncode != 0:
        text = result.stderr.decode("utf-8", "replace").strip()[-500:]
        return Missing("error", f"NVML: the child ended with {result.returncode}: {text}")
    try:
        answer = decode(b'{"answer":' + result.stdout + b"}", _Answer).answer
    except DecodeError as error:
        return Missing("error", f"NVML: the child's answer is not understood: {error}")
    return answer if isinstance(answer, Missing) else answer.gpus
