"""NC936 gpu-hardware."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.logs._causes import Suspect, cause, suspect
from ncclcheck.checks.logs._view import culprits, remarks
from ncclcheck.model.events import Log
from ncclcheck.model.finding import Fix

_HARDWARE = frozenset(
    str(number)
    for number in (
        48,
        62,
        63,
        64,
        74,
        79,
        92,
        93,
        94,
        95,
        110,
        119,
        120,
        121,
        136,
        140,
        143,
        144,
        145,
        149,
        154,
    )
)


@cause(
    "NC936",
    "gpu-hardware",
    "No GPU, NVLink or PCIe link failed",
    explains=(
        "rank-exception",
        "slow-rank-timeout",
        "ib-link-or-fabric",
        "p2p-broken",
        "driver-cuda-mismatch",
    ),
    fixes=(
        Fix(
            "drain the node, reset the GPU or reboot, and have it checked (reseat, RMA) if it comes back",
            (
                "dmesg -T | grep -i xid",
                "nvidia-smi -q -d ECC,PERFORMANCE",
                "ncclcheck preflight --select gpu-xid,gpu-ecc,nvlink-down",
            ),
        ),
    ),
)
def gpu_hardware(log: Log) -> Iterator[Suspect]:
    """A GPU, its memory, its NVLink or its PCIe link failed.

    ## Why it matters
    The ranks on that GPU fail or hang, and with them the whole job. It happens again until the node is repaired.

    ## How to fix
    Drain the node, reset the GPU, and have it checked.

    ## Source
    NVIDIA's list of Xid errors: 48, 62-64, 74, 79, 92-95, 110, 119, 120, 136, 140, 143-145, 149 are hardware or
    firmware; 13, 31, 43, 45 are mostly the program's.
    """
    xids = [
        remark
        for remark in remarks(log, "xid")
        if remark.values.get("sxid") or remark.values.get("xid") in _HARDWARE
    ]
    found = sorted(
        [*xids, *remarks(log, "ecc", "gpu-lost")], key=lambda xid: (xid.place.file, xid.place.line)
    )
    if found:
        numbers = sorted({int(xid.values["xid"]) for xid in xids if xid.values.get("xid", "").isdigit()})
        which = f" (Xid {', '.join(map(str, numbers))})" if numbers else ""
        yield suspect(
            f"The driver reports a failed GPU or GPU link{which}.",
            found,
            hosts=culprits(log, [remark.place for remark in found]),
        )
