"""NC943 nccl-or-driver-bug."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.logs._causes import Suspect, cause, suspect
from ncclcheck.checks.logs._view import culprits, remarks
from ncclcheck.model.events import Log
from ncclcheck.model.finding import Fix


@cause(
    "NC943",
    "nccl-or-driver-bug",
    "No line shows a known defect of NCCL, PyTorch or the driver",
    explains=("roce-gid", "rank-exception", "ib-link-or-fabric"),
    fixes=(
        Fix(
            "upgrade NCCL (2.26 or newer for the RoCE version read), PyTorch or the driver; try another "
            "version of it first",
            ("pip install --upgrade nvidia-nccl-cu12   # in a copy of the environment",),
        ),
    ),
)
def nccl_or_driver_bug(log: Log) -> Iterator[Suspect]:
    """The lines show a defect in NCCL, PyTorch or the driver that another version fixes.

    ## Why it matters
    No setting of the cluster fixes it; at best there is a workaround.

    ## How to fix
    Use a version without the defect.

    ## Source
    NVIDIA/nccl release notes (reading the RoCE version of a GID fails where sysfs answers EINVAL: fixed in
    2.26); torch's INTERNAL ASSERT.
    """
    version_read = [remark for remark in remarks(log, "ib-roce-version") if "nvalid argument" in remark.text]
    crashed = remarks(log, "nccl-crash", "torch-internal")
    if version_read:
        yield suspect(
            "NCCL fails to read the RoCE version of an adapter's GID, a defect of versions before 2.26.",
            version_read,
            confidence="likely",
        )
    elif crashed:
        yield suspect(
            "NCCL or PyTorch failed with an internal error.",
            crashed,
            confidence="likely" if remarks(log, "nccl-crash") else "possible",
            hosts=culprits(log, [remark.place for remark in crashed]),
            explains=(),
        )
