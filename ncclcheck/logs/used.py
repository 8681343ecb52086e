"""What a job really used, as its processes logged it: one row per property and value, with its ranks.

The one reader of this for `explain` (any job's logs) and for the benchmark (its own NCCL logs).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from ncclcheck.model.events import Log, Process, Remark
from ncclcheck.model.report import Used

_ROWS: tuple[tuple[str, Callable[[Process], str]], ...] = (
    ("NCCL", lambda process: process.nccl_version),
    ("CUDA of NCCL", lambda process: process.cuda_version),
    ("driver's CUDA", lambda process: driver_cuda(process.driver_version)),
    ("interface", lambda process: process.interface),
    ("network", lambda process: process.network),
    ("plug-in", lambda process: process.plugin),
    ("RDMA devices", lambda process: " ".join(process.devices)),
    ("sockets", lambda process: " ".join(socket.partition(":")[0] for socket in process.sockets)),
    ("GPUDirect RDMA", lambda process: gpudirect(process)),
    ("channels", lambda process: "" if process.channels is None else str(process.channels)),
    ("algorithms", lambda process: ", ".join(process.algorithms)),
    (
        "nodes",
        lambda process: (
            "" if process.nodes is None else f"{process.nodes} with {process.local_ranks} ranks here"
        ),
    ),
    (
        "settings",
        lambda process: " ".join(f"{name}={value}" for name, value in sorted(process.settings.items())),
    ),
)
_CUDA_MAJOR, _CUDA_MINOR = 1000, 10


def used(log: Log) -> tuple[Used, ...]:
    """Everything that the processes said of themselves, by thing; a thing with several values differs between ranks."""
    rows = list(of_processes(log.processes))
    if not any(row.what == "NCCL" for row in rows):
        rows = [*_of_banners(log), *rows]
    torch = {
        event.values["torch"]: event
        for event in log.events
        if isinstance(event, Remark) and "torch" in event.values
    }
    rows += [Used("torch", version, (), differs=len(torch) > 1) for version in torch]
    return tuple(rows)


def of_processes(processes: Sequence[Process]) -> Iterable[Used]:
    """Yield the rows of those processes."""
    versions = _known_versions(processes)
    kinds = {kind for process in processes for kind in transports(process)}
    if kinds:  # of all ranks together: which of them a rank has follows from its place alone
        yield Used("transports", ", ".join(sorted(kinds)))
    for what, read in _ROWS:
        groups: dict[str, list[Process]] = {}
        for process in processes:
            value = read(process) or (versions.get(process.host, "") if what == "NCCL" else "")
            if value:
                groups.setdefault(value, []).append(process)
        for value, group in groups.items():
            yield Used(what, value, _speakers(group) if len(groups) > 1 else (), differs=len(groups) > 1)


def _known_versions(processes: Iterable[Process]) -> Mapping[str, str]:
    return {process.host: process.nccl_version for process in processes if process.nccl_version}


def _of_banners(log: Log) -> Iterable[Used]:
    versions: dict[str, list[str]] = {}
    for event in log.events:
        if isinstance(event, Remark) and event.topic == "nccl-banner":
            hosts = versions.setdefault(event.values.get("nccl", ""), [])
            if event.place.host and event.place.host not in hosts:
                hosts.append(event.place.host)
    for version, hosts in versions.items():
        yield Used("NCCL", version, tuple(hosts) if len(versions) > 1 else (), differs=len(versions) > 1)


def _speakers(processes: Sequence[Process]) -> tuple[str, ...]:
    """Their hosts; the ranks where one host has several values."""
    return tuple(dict.fromkeys(process.host for process in processes))


def driver_cuda(version: str) -> str:
    """`12060` as 12.6."""
    number = int(version) if version.isdigit() else 0
    return f"{number // _CUDA_MAJOR}.{number % _CUDA_MAJOR // _CUDA_MINOR}" if number else ""


def transports(process: Process) -> tuple[str, ...]:
    """Return the kinds of channels, like `P2P/CUMEM`, `SHM` and `NET/IB/GDRDMA`, without device numbers and options."""
    kinds: dict[str, None] = {}
    for link in process.links:
        parts = link.via.split("/")
        if parts[0] == "NET" and len(parts) > 1:
            gdr = "/GDRDMA" if any(part.startswith("GDRDMA") for part in parts) else ""
            kinds[f"NET/{parts[1]}{gdr}"] = None
        elif parts[0] == "P2P" and len(parts) > 1:
            kinds[f"P2P/{parts[1]}"] = None
        else:
            kinds[parts[0]] = None
    return tuple(sorted(kinds))


def gpudirect(process: Process) -> str:
    """Whether channels between nodes read GPU memory directly; empty where there is no such channel on RDMA."""
    vias = _over_rdma(process)
    if vias:
        with_it = sum("GDRDMA" in via for via in vias)
        return "used" if with_it == len(vias) else "not used" if not with_it else "used by some channels"
    states = _states(process)
    gpus = {whose: state for whose, state in states.items() if whose.startswith("GPU")}
    return " and ".join(sorted({state.lower() for state in (gpus or states).values()}))


def unreachable_gpus(process: Process) -> tuple[str, ...]:
    """Return the lines by which no adapter reads a GPU's memory; none where channels tell that they do.

    That one adapter is too far from a GPU (`Disabled for GPU 1b000 / HCA 2 (distance 7 > 4)`) is normal: NCCL asks
    it of every adapter (graph/paths.cc, ncclTopoCheckGdr), also of those that the GPU does not use.
    """
    disabled = [state for state in process.gpudirect if state.startswith("Disabled")]
    vias = _over_rdma(process)
    if vias:
        return () if any("GDRDMA" in via for via in vias) else tuple(disabled)
    states = _states(process)
    return tuple(line for line in disabled if states[_whose(line)] == "Disabled")


def reports_channels(log: Log) -> bool:
    """Return True if some process printed a channel over RDMA, and whether that reads GPU memory."""
    return any(_over_rdma(process) for process in log.processes)


def _over_rdma(process: Process) -> list[str]:
    return [link.via for link in process.links if link.via.startswith("NET/") and "Socket" not in link.via]


def _states(process: Process) -> dict[str, str]:
    """Return Enabled or Disabled of each GPU and adapter; a GPU is reached if one adapter reaches it."""
    states: dict[str, str] = {}
    for line in process.gpudirect:
        state = line.partition(" ")[0]
        if state == "Enabled" or _whose(line) not in states:
            states[_whose(line)] = state
    return states


def _whose(line: str) -> str:
    """Return `GPU 1b000` of `Enabled for GPU 1b000 / HCA 0 (...)`, `HCA 0 'mlx5_0'` of `Enabled for HCA 0 'mlx5_0'`."""
    return line.partition(" for ")[2].partition(" / ")[0]
