"""Reads the error counters of RDMA ports: once before a run and once after it, what grew in between was the run's."""

from __future__ import annotations

import re
from pathlib import Path

from msgspec.structs import replace

from ncclcheck import timeouts
from ncclcheck.facts.bounded_call import within
from ncclcheck.facts.section import Section
from ncclcheck.facts.text_files import readable
from ncclcheck.facts.tree import Folder, machine
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import NodeFacts
from ncclcheck.model.hardware import PortCounters, RdmaCounters

_FOLDERS = ("counters", "hw_counters")
# Of all counters those that count something that went wrong, by the words that drivers use in their names. Traffic is
# left out, and so are completions that were flushed, which every end of a connection makes.
_OF_ERRORS = re.compile(
    r"err|retrans|discard|drop|nak|timeout|downed|recovery|integrity|overrun|out_of_|restart|cnp|ecn_marked|icrc"
    r"|duplicate|retr(?:y|ies)|unresponsive|impaired|violation|bad_|lost|missing"
)
_NO_ERROR = re.compile(r"flush|cqe_error|vl15|^lifespan$|ignored", re.IGNORECASE)
# Linux, drivers/infiniband/core/sysfs.c (show_pma_counter); others answer with EOPNOTSUPP or EINVAL.
_NO_COUNTER = "N/A (no PMA)"
_MOST_COUNTERS = 96
_PORT = re.compile(r"[0-9]{1,3}", re.ASCII)
_COUNT = re.compile(r"[0-9]{1,20}", re.ASCII)
_LARGEST = (1 << 64) - 1
_NOT_AGAIN = Missing("absent", "read once only: what grows shows at the end of a run")


def read_rdma_counters(root: Path) -> Fact[RdmaCounters]:
    """Return the error counters of every RDMA port of the machine below `root` as they are now, as those before a run.

    Missing where /sys/class is not there, or its folder of RDMA devices cannot be read; a machine without that folder
    has no ports.
    """
    here = machine(root)
    classes = here.folder("sys/class")
    if isinstance(classes, Missing):
        return classes
    devices = here.names("sys/class/infiniband")
    if isinstance(devices, Missing):
        return RdmaCounters(()) if devices.missing == "absent" else devices
    return RdmaCounters(
        tuple(port for device in devices for port in _ports(here, f"sys/class/infiniband/{device}", device))
    )


def read_again(
    deadline_s: float = timeouts.COUNTERS_AGAIN_S, root: Path = Path("/")
) -> Fact[tuple[PortCounters, ...]]:
    """Return the counters of this machine now; Missing "timeout" where a device holds up the reading."""
    read = within(deadline_s, read_rdma_counters, root)
    return read if isinstance(read, Missing) else read.ports


def _ports(here: Folder, folder: str, device: str) -> list[PortCounters]:
    numbers = here.names(f"{folder}/ports")
    return [
        PortCounters(readable(device), int(number), _counters(here, f"{folder}/ports/{number}"), _NOT_AGAIN)
        for number in (() if isinstance(numbers, Missing) else numbers)
        if _PORT.fullmatch(number)
    ]


def _counters(here: Folder, port: str) -> Fact[dict[str, Fact[int]]]:
    """Return the counters by name; Missing where the port has no folder of counters, or none that counts errors."""
    found: dict[str, Fact[int]] = {}
    why = Missing("absent", f"/{port}: no counter of errors")
    for folder in _FOLDERS:
        names = here.names(f"{port}/{folder}")
        if isinstance(names, Missing):
            why = why if names.missing == "absent" else names
            continue
        for name in names:
            if _OF_ERRORS.search(name) and not _NO_ERROR.search(name) and len(found) < _MOST_COUNTERS:
                value = _count(here.line(f"{port}/{folder}/{name}"))
                if value is not None:
                    found[readable(name)] = value
    return found or why


def _count(line: Fact[str]) -> Fact[int] | None:
    """Return the number in a counter's file; None where the card does not have this counter, which its file says."""
    if isinstance(line, Missing):
        return None if line.missing in ("error", "unsupported") else line
    if line.startswith(_NO_COUNTER):
        return None
    if not _COUNT.fullmatch(line) or int(line) > _LARGEST:
        return Missing("error", f"no number: {line[:40]!r}")
    return int(line)


def with_reading(facts: NodeFacts, reading: Fact[tuple[PortCounters, ...]]) -> NodeFacts:
    """Return the facts in which every port has what it counts now; a port that is gone says so."""
    counters = facts.rdma_counters
    if isinstance(counters, Missing):
        return facts
    gone = Missing("absent", "the port is not there any more")
    now = {} if isinstance(reading, Missing) else {(port.device, port.port): port.before for port in reading}
    ports = tuple(
        replace(
            port, after=reading if isinstance(reading, Missing) else now.get((port.device, port.port), gone)
        )
        for port in counters.ports
    )
    return replace(facts, rdma_counters=RdmaCounters(ports))


RDMA_COUNTERS = Section(
    {"rdma_counters": "/sys/class/infiniband/*/ports/*/counters and hw_counters"},
    read=lambda _: read_rdma_counters(Path("/")),
    read_tree=lambda here: read_rdma_counters(here.root),
)
