"""The NCCL log of one benchmark worker: written to memory, bounded, read by its agent, gone with the two processes.

NCCL opens what NCCL_DEBUG_FILE names and writes a line at a time (NCCL src/debug.cc, ncclDebugInit, 2.18 to 2.32). Here
that is a file in memory that the worker inherits: nothing is written to a disk, others cannot read it, and a kill
leaves nothing behind. A log that the job itself asked for is not touched: the benchmark's ranks write to this one.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from ncclcheck.logs.collect import Collector
from ncclcheck.logs.lines.split import batches
from ncclcheck.model.events import Process
from ncclcheck.model.fact import Fact, Missing

LIMIT_BYTES = 16 << 20  # what NCCL says at its start is below 1 MiB; each enqueued call adds a line at rank 0
_TAIL_BYTES, _WARNINGS = 1 << 16, 3
_CHUNK_BYTES = 1 << 20
_READ_BYTES = 32 << 20  # of all logs of a node: reading them must not keep node 0 waiting
# INIT BOOTSTRAP ENV are NCCL's own choice; NET lists devices and GPUDirect, GRAPH the channels, TUNING algorithm and
# protocol. COLL, P2P and PROXY, which write many lines within each call, are left out even where the job has them:
# they would be measured too. TUNING's line is written while calls are enqueued, before the clock of the GPU starts.
_SUBSYSTEMS = "INIT,BOOTSTRAP,ENV,NET,GRAPH,TUNING"
_LEVEL = "INFO"


class NcclLog:
    """A file in memory, and where it is. A class because its descriptor must be closed."""

    def __init__(self, rank: int) -> None:
        """Make the file. Raises OSError where no memory or no descriptor is left."""
        self.rank = rank
        self.descriptor = os.memfd_create(f"ncclcheck-nccl-{rank}", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        self._is_full = False
        self._seen_bytes = self._before_bytes = 0
        self._stamp_ns = -1

    def environment(self) -> dict[str, str]:
        """Return the variables under which NCCL writes to it.

        NCCL_DEBUG_TIMESTAMP_LEVELS and the like stay as they are: they change the beginning of lines alone.
        """
        return {
            "NCCL_DEBUG": _LEVEL,
            "NCCL_DEBUG_SUBSYS": _SUBSYSTEMS,
            "NCCL_DEBUG_FILE": f"/proc/self/fd/{self.descriptor}",
        }

    def bound(self) -> None:
        """Bound its size to 16 MiB: what NCCL writes after that is lost, and NCCL goes on."""
        if not self._is_full and os.fstat(self.descriptor).st_size > LIMIT_BYTES:
            fcntl.fcntl(self.descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_GROW)
            self._is_full = True

    def chunks(self) -> Iterable[bytes]:
        """Yield what it holds, from its beginning."""
        offset = 0
        while offset <= LIMIT_BYTES and (chunk := os.pread(self.descriptor, _CHUNK_BYTES, offset)):
            offset += len(chunk)
            yield chunk

    def follow(self, stamp_ns: int) -> None:
        """Note how long the log was before the rank last made progress, at `stamp_ns`. To be called at each look."""
        if stamp_ns != self._stamp_ns:
            self._stamp_ns, self._before_bytes = stamp_ns, self._seen_bytes
        self._seen_bytes = os.fstat(self.descriptor).st_size

    def warnings(self, *, since_progress: bool = False) -> str:
        """Return the last lines in which NCCL warned, from the end of the log; empty where there are none.

        `since_progress`: only those that were not there yet when the rank still made progress (`follow`).
        """
        size = os.fstat(self.descriptor).st_size
        start = max(0, size - _TAIL_BYTES, self._before_bytes if since_progress else 0)
        tail = os.pread(self.descriptor, _TAIL_BYTES, start).decode(errors="replace")
        lines = [line for line in tail.splitlines() if " NCCL WARN " in line]
        return "".join(f"{line}\n" for line in lines[-_WARNINGS:])

    def close(self) -> None:
        """Free the memory, as soon as the worker has ended too."""
        os.close(self.descriptor)


def with_log(environment: Mapping[str, str], log: NcclLog) -> dict[str, str]:
    """Return the worker's environment with its log. NCCL_DEBUG=TRACE stays: it includes INFO."""
    variables = log.environment()
    if environment.get("NCCL_DEBUG", "").strip().upper() == "TRACE":
        del variables["NCCL_DEBUG"]
    return {**environment, **variables}


def read_logs(logs: Sequence[NcclLog], host: str) -> Fact[tuple[Process, ...]]:
    """Return what the workers of a node logged; Missing where none of them wrote anything.

    The host is called as the report calls it, and settings are left out: the node's facts have them, less what must
    not leave it.
    """
    collector = Collector()
    left = _READ_BYTES
    for log in logs:
        chunks = []
        for chunk in log.chunks():
            if left <= 0:
                break
            left -= len(chunk)
            chunks.append(chunk)
        collector.read(f"rank-{log.rank}", batches(chunks))
    processes = tuple(replace(process, host=host, settings={}) for process in collector.log().processes)
    return processes or Missing("absent", "NCCL wrote nothing to the log of these ranks")
