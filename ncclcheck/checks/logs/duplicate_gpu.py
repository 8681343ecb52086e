"""NC919 duplicate-gpu."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ncclcheck.checks.logs._causes import Suspect, cause, suspect
from ncclcheck.checks.logs._view import culprits, remarks, troubles
from ncclcheck.model.events import CommInit, Log, Remark
from ncclcheck.model.finding import Fix

_DEVICE = re.compile(r"nvmlDev (?P<number>\d{1,3})\b")
_REFUSED = re.compile(r"invalid usage|ncclInvalidUsage", re.IGNORECASE)


@cause(
    "NC919",
    "duplicate-gpu",
    "Two ranks use the same GPU",
    explains=("rank-exception", "gpu-visibility"),
    fixes=(
        Fix(
            "call torch.cuda.set_device(LOCAL_RANK) before init_process_group, do not hard-code a device, "
            "and check CUDA_VISIBLE_DEVICES and the number of processes per node",
            (
                "nvidia-smi -L",
                "ncclcheck preflight --select gpu-count",
            ),
        ),
    ),
)
def duplicate_gpu(log: Log) -> Iterator[Suspect]:
    """Two ranks use one GPU.

    ## Why it matters
    NCCL rejects that, and creates no communicator.

    ## How to fix
    Give each process its own device by its local rank, before the first collective.

    ## Source
    NCCL init.cc up to 2.29 (`Duplicate GPU detected`), 2.30 (`Multiple Ranks are using the same GPU`).
    """
    found = remarks(log, "duplicate-gpu")
    if found:
        first = found[0]
        pair = [first.values[name] for name in ("first", "second") if name in first.values]
        which = f"Rank {pair[0]} and rank {pair[1]}" if len(pair) > 1 else "Two ranks"
        ranks = sorted(
            {int(line.values[name]) for line in found for name in ("first", "second") if name in line.values}
        )
        hosts = culprits(log, [remark.place for remark in found if remark.place.host])
        hosts = tuple(host for host in hosts if not host.startswith("rank "))
        yield suspect(
            f"{which} use the same GPU.",
            found,
            hosts=(*hosts[:1], *(f"rank {rank}" for rank in ranks[: 4 if hosts else 2])),
        )
    elif busy := remarks(log, "gpu-busy"):
        takers = [line for line in remarks(log, "gpu-taken") if "device" in line.values]
        taken = [remark.values["device"] for remark in takers]
        twice = [line for line in takers if taken.count(line.values["device"]) > 1]
        if len({remark.place.host for remark in twice}) == 1:
            yield suspect(
                f"Two processes took GPU {twice[0].values['device']}, and it serves one at a time: another has it "
                "(compute mode EXCLUSIVE_PROCESS), or each process must take its own.",
                [*busy, *twice],
                confidence="likely",
                hosts=culprits(log, [remark.place for remark in busy if remark.place.host]),
            )
    elif of_one := _on_one_device(log):
        yield _unrefused(log, *of_one)
    elif refused := [line for line in remarks(log, "generic-nccl") if _REFUSED.search(line.text)]:
        yield from _reported_duplicates(log, refused)


def _unrefused(log: Log, first: CommInit, second: CommInit) -> Suspect:
    """Return that two ranks use one GPU, which their NCCL does not say."""
    ranks = (first.comm_rank, second.comm_rank)
    return suspect(
        f"Rank {ranks[0]} and rank {ranks[1]} use the same GPU, which this NCCL does not refuse.",
        [first, second, *troubles(log)[:2]],
        confidence="likely",
        hosts=(*((first.place.host,) if first.place.host else ()), *(f"rank {rank}" for rank in ranks)),
    )


def _on_one_device(log: Log) -> tuple[CommInit, CommInit] | None:
    """Return two ranks of one communicator, in two processes of a host, that have one GPU, if the job got no further.

    NCCL before 2.5 did not look for that (init.cc). It names no communicator, so its size stands for it.
    """
    pid_of = {(process.host, process.rank): process.pid for process in log.processes}
    first: dict[tuple[str, int, str], CommInit] = {}
    for event in log.events if troubles(log) else ():
        if not isinstance(event, CommInit) or "commId" in event.text:
            continue
        host, device = event.place.host or "", _DEVICE.search(event.text)
        if device is None:
            continue
        known = first.setdefault((host, event.comm_ranks, device["number"]), event)
        pids = [pid_of.get((host, rank)) for rank in (known.comm_rank, event.comm_rank)]
        if None not in pids and pids[0] != pids[1]:
            return known, event
    return None


def _reported_duplicates(log: Log, refused: Sequence[Remark]) -> Iterator[Suspect]:
    """Yield two ranks which say that they use the same GPU of one host, where NCCL refuses its arguments."""
    user_of: dict[tuple[str | None, str], Remark] = {}
    for line in remarks(log, "gpu-taken"):
        if "taker" not in line.values:
            continue
        first = user_of.setdefault((line.place.host, line.values["number"]), line)
        if first.values["taker"] != line.values["taker"]:
            ranks = (first.values["taker"], line.values["taker"])
            yield suspect(
                f"Rank {ranks[0]} and rank {ranks[1]} use the same GPU, by their own words, and NCCL refuses that.",
                [first, line, *refused],
                confidence="likely",
                hosts=(*((line.place.host,) if line.place.host else ()), *(f"rank {rank}" for rank in ranks)),
            )
            return
