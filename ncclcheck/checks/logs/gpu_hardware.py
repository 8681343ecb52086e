"""NC936 gpu-hardware."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ncclcheck.checks.logs._causes import Suspect, cause, suspect
from ncclcheck.checks.logs._view import culprits, hosts_of, remarks
from ncclcheck.checks.xid import sxid_demand, xid_demand
from ncclcheck.model.events import Log, Remark
from ncclcheck.model.finding import Fix

_MANY = 3  # hosts
_OF_MEMORY = frozenset({63, 92, 94})  # ask for less than a reset, and tell of memory that fails


@cause(
    "NC936",
    "gpu-hardware",
    "A GPU, NVLink or PCIe link failed",
    explains=(
        "rank-exception",
        "slow-rank-timeout",
        "ib-link-or-fabric",
        "p2p-broken",
        "driver-cuda-mismatch",
        "gpu-visibility",
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
    NVIDIA's catalogue of Xid errors and its list of SXid errors: those that ask for a reset, a reboot or a person, and
    those of the GPU's memory. What asks to restart the program only is mostly the program's own (13, 31, 43, 45).
    """
    xids = [remark for remark in remarks(log, "xid") if _is_of_hardware(remark)]
    found = sorted(
        [*xids, *remarks(log, "ecc", "gpu-lost")], key=lambda xid: (xid.place.file, xid.place.line)
    )
    busy = remarks(log, "gpu-busy")
    if not found and _is_one_of_many(log, busy):
        yield suspect(
            "One GPU of many does not take work (CUDA calls it busy or unavailable): another process has it to "
            "itself, or it needs a reset.",
            busy,
            confidence="likely",
            hosts=culprits(log, [remark.place for remark in busy[:1]]),
        )
    if found:
        numbers = sorted({int(xid.values["xid"]) for xid in xids if xid.values.get("xid", "").isdigit()})
        which = f" (Xid {', '.join(map(str, numbers))})" if numbers else ""
        yield suspect(
            f"The driver reports a failed GPU or GPU link{which}.",
            found,
            hosts=culprits(log, [remark.place for remark in found]),
        )


def _is_one_of_many(log: Log, busy: Sequence[Remark]) -> bool:
    """Return True if one rank alone, of a job of many, says that its GPU is busy or unavailable."""
    ranks = {remark.place.rank for remark in busy}
    return len(ranks) == 1 and None not in ranks and len(hosts_of(log)) >= _MANY


def _is_of_hardware(line: Remark) -> bool:
    """Return True for an Xid or SXid that the program cannot cause, or of which nobody says what it asks for."""
    if "sxid" in line.values:
        return sxid_demand(int(line.values["sxid"][:9]), line.text) in ("reset", "reboot", "look", None)
    number = int(line.values["xid"][:9])
    return number in _OF_MEMORY or xid_demand(number, line.text) in ("reset", "reboot", "look")
