"""The ranks of a running job on this node, found and read in /proc: cheap enough for every few seconds."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from ncclcheck.model.job.watched import Look, RankLook

_PROC, _RDMA = Path("/proc"), Path("/sys/class/infiniband")
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
# Variables with the rank where no launcher of torch sets RANK.
_RANK_VARIABLES = ("RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID")
_RDMA_WORD_BYTES = 4  # port_xmit_data counts words (IBTA)
_MOST_PROCESSES = 20_000
_ENVIRON_BYTES = 1 << 20


class RankProcess(Struct, frozen=True):
    """The main process of a rank. `started` distinguishes it from a later process with the same id."""

    rank: int | None
    pid: int
    started: str
    world_size: int = 0
    local_world_size: int = 0
    error_file: str = ""


def find_ranks(root: int) -> tuple[RankProcess, ...]:
    """Return the ranks among a process and its descendants, by rank: those with a LOCAL_RANK of their own.

    Where none has one, the process itself is the only rank.
    """
    found: list[RankProcess] = []
    unseen = [root]
    while unseen and len(found) < _MOST_PROCESSES:
        pid = unseen.pop()
        environ = _environ(pid)
        if "LOCAL_RANK" in environ and (process := _rank_process(pid, environ)) is not None:
            found.append(process)  # its own children belong to it
        else:
            unseen.extend(_children(pid))
    if not found and (process := _rank_process(root, _environ(root))) is not None:
        found.append(process)
    return tuple(sorted(found, key=lambda rank: (rank.rank is None, rank.rank or 0, rank.pid)))


def look_at(ranks: tuple[RankProcess, ...], at_s: float) -> Look:
    """Return what /proc shows of the ranks that still exist, each with its own child processes."""
    looks = (_look_at(rank) for rank in ranks)
    return Look(at_s, tuple(look for look in looks if look is not None), network_bytes())


def pids_of(ranks: tuple[RankProcess, ...]) -> frozenset[int]:
    """Return the process ids of the ranks and of their own child processes."""
    return frozenset(pid for rank in ranks for pid in (rank.pid, *_descendants(rank.pid)))


def own_pids_of(ranks: tuple[RankProcess, ...]) -> frozenset[int]:
    """Return the ids by which these processes know themselves: in a container other ones than here."""
    return frozenset(_own_pid(pid) for pid in pids_of(ranks))


def own_pid(status: str, pid: int) -> int:
    """Return the id of process `pid` in its own pid namespace, from its /proc/PID/status.

    The last number of NSpid (proc_pid_status(5), since Linux 4.1); `pid` itself where there is no such line.
    """
    numbers = status.partition("\nNSpid:")[2].partition("\n")[0].split()
    return (_number(numbers[-1]) if numbers else None) or pid


def stat_fields(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat from the third on (the state), or none if there is no such process."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return []
    return text.rpartition(")")[2].split()


def network_bytes(proc: Path = _PROC, rdma: Path = _RDMA) -> int:
    """Return the bytes that all links but the loopback, and all RDMA ports, have moved since they came up."""
    total = 0
    with suppress(OSError, ValueError, IndexError):
        for text in (proc / "net" / "dev").read_text().splitlines()[2:]:
            name, _, numbers = text.partition(":")
            if name.strip() != "lo":
                fields = numbers.split()
                total += int(fields[0]) + int(fields[8])
    for name in ("port_xmit_data", "port_rcv_data"):
        for file in rdma.glob(f"*/ports/*/counters/{name}"):
            with suppress(OSError, ValueError):
                total += int(file.read_text()) * _RDMA_WORD_BYTES
    return total


def kernel_view(pid: int) -> str:
    """Return what the kernel says of a process that needs no stack: status, where it sleeps, its system call."""
    parts = []
    for name in ("status", "wchan", "syscall", "io"):
        with suppress(OSError):
            text = (_PROC / str(pid) / name).read_bytes().replace(b"\0", b" ").decode(errors="replace")
            parts.append(f"== {name}\n{text}\n")
    return "".join(parts)


def _look_at(process: RankProcess) -> RankLook | None:
    fields = stat_fields(process.pid)
    if not fields or fields[0] in ("Z", "X") or fields[19] != process.started:
        return None
    cpu_s, io_bytes = 0.0, 0
    for pid in (process.pid, *_descendants(process.pid)):
        numbers = stat_fields(pid)
        cpu_s += sum(int(number) for number in numbers[11:15]) / _TICKS_PER_S if numbers else 0.0
        io_bytes += _io_bytes(pid)
    return RankLook(process.rank, process.pid, fields[0], cpu_s, _switches(process.pid), io_bytes)


def _io_bytes(pid: int) -> int:
    with suppress(OSError, ValueError, IndexError):
        lines = (_PROC / str(pid) / "io").read_text().splitlines()
        return sum(int(line.split()[1]) for line in lines[:2])  # rchar, wchar: sockets and caches too
    return 0


def _switches(pid: int) -> int:
    with suppress(OSError, ValueError, IndexError):
        text = (_PROC / str(pid) / "task" / str(pid) / "status").read_text(errors="replace")
        return int(text.partition("\nvoluntary_ctxt_switches:")[2].split()[0])
    return 0


def _descendants(pid: int) -> Iterator[int]:
    unseen = list(_children(pid))
    for _ in range(_MOST_PROCESSES):
        if not unseen:
            return
        child = unseen.pop()
        yield child
        unseen.extend(_children(child))


def _children(pid: int) -> Iterator[int]:
    """Yield the children of all threads of a process (CONFIG_PROC_CHILDREN)."""
    with suppress(OSError):
        for thread in os.listdir(_PROC / str(pid) / "task"):  # noqa: PTH208 (names only)
            with suppress(OSError):
                text = (_PROC / str(pid) / "task" / thread / "children").read_text()
                yield from (int(child) for child in text.split())


def _environ(pid: int) -> Mapping[str, str]:
    try:
        with (_PROC / str(pid) / "environ").open("rb") as stream:
            data = stream.read(_ENVIRON_BYTES)
    except OSError:
        return {}
    pairs = (entry.partition(b"=") for entry in data.split(b"\0"))
    return {name.decode(errors="replace"): value.decode(errors="replace") for name, _, value in pairs}


def _own_pid(pid: int) -> int:
    try:
        return own_pid((_PROC / str(pid) / "status").read_text(errors="replace"), pid)
    except OSError:
        return pid


def _rank_process(pid: int, environ: Mapping[str, str]) -> RankProcess | None:
    fields = stat_fields(pid)
    if not fields or fields[0] in ("Z", "X"):
        return None
    numbers = (_number(environ.get(name)) for name in _RANK_VARIABLES)
    return RankProcess(
        next((number for number in numbers if number is not None), None),
        pid,
        fields[19],
        _number(environ.get("WORLD_SIZE")) or 0,
        _number(environ.get("LOCAL_WORLD_SIZE")) or 0,
        environ.get("TORCHELASTIC_ERROR_FILE", ""),
    )


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() else None
