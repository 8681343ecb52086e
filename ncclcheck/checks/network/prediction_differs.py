"""NC215 prediction-differs."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.ifname_settings import NCCL_VARIABLE, Setting, not_settled, settings
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.finding import Evidence, Finding, Fix, NotApplicable
from ncclcheck.model.snapshot import Snapshot


@check(
    "NC215",
    "prediction-differs",
    "ncclcheck's model of NCCL agrees with the library",
    needs=("interfaces", "environment", "nccl"),
)
def prediction_differs(snapshot: Snapshot) -> Iterator[Answer]:
    """Where the real library was asked which interface it uses, ncclcheck's model predicts the same.

    ## Why it matters
    The answer of the library is what counts, and it is what is reported. A difference is a fault of ncclcheck: what it
    predicts for other versions, or for nodes that cannot be asked, is then in doubt.

    ## How to fix
    Report it, with the file that `--save` writes.

    ## Source
    ncclGetUniqueId of the library named in the evidence; ncclcheck/nccl/socket_interface.py.
    """
    known = settings(snapshot)
    for one in known:
        if one.choice.disagreement:
            yield _finding(one)
    if not any(one.choice.source == "asked" for one in known):
        yield NotApplicable("the library was asked on no node")
    yield from not_settled(snapshot)


def _finding(one: Setting) -> Finding:
    return Finding(
        "warning",
        f"on {one.host}, {one.choice.disagreement}",
        (one.host,),
        (
            Evidence(
                (one.host,),
                f"NCCL's choice ({NCCL_VARIABLE}={one.nccl or 'unset'})",
                f"{one.choice.interface} {one.choice.address}",
                "what the model says",
                one.choice.library or "the library",
            ),
        ),
        (
            Fix(
                "report it as a bug of ncclcheck, with the snapshot",
                ("ncclcheck preflight --save snapshot.json",),
            ),
        ),
    )
