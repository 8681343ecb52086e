"""NC931 python-env."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ncclcheck.checks.logs._causes import Suspect, cause, suspect
from ncclcheck.checks.logs._view import culprits, exceptions, remarks
from ncclcheck.model.events import Log, PythonException
from ncclcheck.model.finding import Fix

_LOADER = ("symbol lookup error", "not found (required by", ": No module named ")  # not raised, but printed

_OF_TORCH = re.compile(r"-packages/torch/")
# pybind11's word on a call that no signature fits, and Python's on a name that the compiled part lacks
_UNFIT_CALL = re.compile(
    r"incompatible (?:constructor|function) arguments|'torch\._C[\w.]{0,40}' has no attribute"
)


@cause(
    "NC931",
    "python-env",
    "An import failed, or packages are incompatible",
    explains=("rank-exception", "world-size-mismatch", "slow-rank-timeout", "firewall-blocked-ports"),
    fixes=(
        Fix(
            "install the same environment (image, pip freeze) on every node, with a CUDA build of torch; "
            "reinstall the package that is named",
            (
                "pip check; python -m torch.utils.collect_env",
                "ncclcheck preflight --select version-differs,torch-unusable",
            ),
        ),
    ),
)
def python_env(log: Log) -> Iterator[Suspect]:
    """A module could not be imported, or installed packages are not compatible with each other.

    ## Why it matters
    Usually one node has another environment. Its ranks end at once, and the others wait for them at the
    rendezvous.

    ## How to fix
    Install the same environment or image on every node.

    ## Source
    CPython's ImportError and ModuleNotFoundError; the loader's symbol and version errors; torch without NCCL.
    """
    raised = [
        exception
        for exception in exceptions(log)
        if {"import", "no-nccl-built"}.intersection(exception.topics) or _is_of_torchs_parts(exception)
    ]
    raised = [
        exception
        for exception in raised
        if "nccl-symbol" not in exception.topics
        and (
            "missing-file" not in exception.topics
            or exception.class_name.endswith("ImportError")
            or "cannot open shared object file" in exception.message
        )
    ]
    loader = [remark for remark in remarks(log, "import") if any(words in remark.text for words in _LOADER)]
    loader += remarks(log, "no-nccl-built")
    found = [*raised, *(() if raised else loader)]
    if found:
        yield suspect(
            f"The Python environment is broken, or differs between nodes: {found[0].text.strip()[:200]}.",
            found,
            hosts=culprits(log, [event.place for event in found]),
        )


def _is_of_torchs_parts(exception: PythonException) -> bool:
    """Return True if torch's Python part called its compiled part wrongly: they are of two versions."""
    return bool(_OF_TORCH.search(exception.where) and _UNFIT_CALL.search(exception.message))
