"""NC504 torch-unusable."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.hosts import not_reported
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import Evidence, Finding, Fix, Severity
from ncclcheck.model.snapshot import Snapshot

_WORDS: dict[str, tuple[Severity, str]] = {
    "torch-broken": ("error", "so it can join no job"),
    "torch-late": ("warning", "or not in the time and memory that this run has"),
}


@check("NC504", "torch-unusable", "torch can be imported on every node", needs=("master",), nodes=2)
def torch_unusable(snapshot: Snapshot) -> Iterator[Answer]:
    """`import torch` succeeds on every node.

    ## Why it matters
    A node without torch cannot join the job: its process ends before it contacts the others, which then wait for it.

    ## How to fix
    Run `python -c "import torch"` on the node, with the interpreter and environment of the job, and fix what it
    reports: a missing shared library, a broken installation, a filesystem that does not answer.

    ## Source
    The node's own attempt to import torch, which every rank of the job makes first.
    """
    yield from not_reported(snapshot)
    claims = {node.host: node.facts.master for node in snapshot.nodes}
    claims |= {
        silent.host: silent.knock.master
        for silent in snapshot.silent
        if not isinstance(silent.knock, Missing)
    }
    for host, claim in claims.items():
        if not isinstance(claim, Missing) and claim.outcome in _WORDS:
            severity, consequence = _WORDS[claim.outcome]
            yield Finding(
                severity,
                f"torch cannot be used on {host}, {consequence}: {claim.detail}",
                (host,),
                (Evidence((host,), "import torch", claim.detail, "is imported", "the attempt of this run"),),
                (Fix("repair the torch installation of this node", ('python -c "import torch"',)),),
            )
