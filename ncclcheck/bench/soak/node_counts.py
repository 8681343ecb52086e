"""What a node counts between two blocks of a soak: errors of its links, packets sent again, stolen time."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from ncclcheck.bench.gathering import DOCUMENT_BYTES
from ncclcheck.bench.gpu.gpu_health import GpuLook
from ncclcheck.bench.heartbeat import waited_ns
from ncclcheck.facts.bounded_call import within
from ncclcheck.facts.network.interface_files import SYSFS_NET
from ncclcheck.facts.network.link_counters import read_links_again
from ncclcheck.measure.soak.counters import CARRIER
from ncclcheck.model.benchmarks.soak import NodeCounts
from ncclcheck.model.codec import encode
from ncclcheck.model.fact import Missing
from ncclcheck.timeouts import SOAK_COUNTERS_S

_SNMP = "proc/net/snmp"
_STAT = "proc/stat"
_THREADS = "proc/self/task"
_THROTTLED = "sys/devices/system/cpu"
_SPEEDS = {  # Documentation/ABI/testing/sysfs-class-net, sysfs-bus-pci
    "speed": "Mbit/s",
    "device/current_link_speed": "PCIe",
    "device/current_link_width": "PCIe lanes",
}
_LONGEST_SPEED = 40
_STEAL, _COLUMNS = 7, 8  # columns of /proc/stat after the name, proc_stat(5)


class CounterReader:
    """The counters of this machine. A class because it returns the growth since the last read."""

    def __init__(self, host: str, root: Path = Path("/")) -> None:
        self._host, self._root = host, root
        self._counts: dict[str, int] = {}
        self._speeds: dict[str, str] = {}
        self._ticks = (0, 0)
        self._waited: dict[str, int] = {}
        self._at_s = time.monotonic()
        self.grown()

    def grown(self) -> NodeCounts:
        """Return what grew since the last call. A counter that can not be read any more has not grown."""
        links = _of_links(self._root)
        changed = self._changed_speeds(name.split()[0] for name in links)
        counts = {**links, **_of_tcp(self._root), **_of_cores(self._root)}
        before, self._counts = self._counts, {**self._counts, **counts}
        stolen, ticks = _ticks(self._root)
        (stolen_before, ticks_before), self._ticks = self._ticks, (stolen, ticks)
        elapsed = ticks - ticks_before
        return NodeCounts(
            self._host,
            {
                name: count - before[name]
                for name, count in counts.items()
                if name in before and count > before[name]
            }
            | changed,
            round(min(1.0, max(0, stolen - stolen_before) / elapsed), 4) if elapsed > 0 else 0.0,
            carriers=sum(name.endswith(CARRIER) for name in links),
            waited=self._waited_part(),
        )

    def _waited_part(self) -> float:
        """Return for which part of the time since the last call the threads of this process waited for a core."""
        now_s, waited = time.monotonic(), waited_ns(self._root / _THREADS)
        grown = sum(max(0, ns - self._waited.get(thread, 0)) for thread, ns in waited.items())
        elapsed_s, self._at_s, self._waited = now_s - self._at_s, now_s, waited
        return round(min(1.0, grown / 1e9 / elapsed_s), 4) if elapsed_s > 0 else 0.0

    def _changed_speeds(self, interfaces: Iterable[str]) -> dict[str, int]:
        """Return which links run at another speed or width than when they were last read."""
        found = within(SOAK_COUNTERS_S, _speeds, self._root, tuple(dict.fromkeys(interfaces)))
        if isinstance(found, Missing):
            return {}
        before, self._speeds = self._speeds, {**self._speeds, **found}
        return {
            f"{name} from {before[name]} to {now}": 1
            for name, now in found.items()
            if before.get(name, now) != now
        }


def of_gpu(host: str, number: int, look: GpuLook, clock_mhz: float) -> NodeCounts:
    """Return what was seen of one GPU of the node during the block; `clock_mhz`: as measured, 0 if it was not."""
    counts = {f"GPU {number} blocks with {reason}": 1 for reason in look.slowdowns}
    counts |= {
        f"GPU {number} NVLink errors": look.nvlink_errors,
        f"GPU {number} PCIe replays": look.pcie_replays,
    }
    return NodeCounts(
        host,
        {name: count for name, count in counts.items() if count},
        clock_mhz=clock_mhz or float(look.clock_mhz),
        temperature_c=look.temperature_c,
    )


def merged(parts: Iterable[NodeCounts]) -> tuple[NodeCounts, ...]:
    """Return one for each node, in their order: all counters, the lowest clock, the hottest GPU."""
    found: dict[str, NodeCounts] = {}
    for part in parts:
        known = found.get(part.host)
        if known is None:
            found[part.host] = part
            continue
        clocks = [mhz for mhz in (known.clock_mhz, part.clock_mhz) if mhz > 0]
        found[part.host] = replace(
            known,
            counts={**known.counts, **part.counts},
            clock_mhz=min(clocks, default=0.0),
            temperature_c=max(known.temperature_c, part.temperature_c),
        )
    return tuple(found.values())


def packed(counts: NodeCounts) -> bytes:
    """Return it small enough to be gathered: where there is too much, the counters that grew most."""
    data = encode(counts)
    names = sorted(counts.counts, key=lambda name: -counts.counts[name])
    while len(data) > DOCUMENT_BYTES and names:
        names = names[: len(names) * 3 // 4]
        data = encode(replace(counts, counts={name: counts.counts[name] for name in names}))
    return data


def _of_links(root: Path) -> dict[str, int]:
    """Return all counters of the links, zeros too: what was not there before is not known to have grown."""
    found = read_links_again(SOAK_COUNTERS_S, zeros=True)
    if isinstance(found, Missing):
        return {}
    return {
        f"{link.interface} {name}": count
        for link in found
        if not isinstance(link.before, Missing)
        for name, count in link.before.items()
        if not isinstance(count, Missing) and (name != CARRIER or not _is_of_containers(root, link.interface))
    }


def _speeds(root: Path, interfaces: Sequence[str]) -> dict[str, str]:
    """Return at which speed each link runs, and its card's PCIe link; a link that is down has none."""
    found = {}
    for interface in interfaces:
        for file, what in _SPEEDS.items():
            with suppress(OSError, ValueError):
                text = (root / SYSFS_NET / interface / file).read_text().strip()[:_LONGEST_SPEED]
                if text and not text.startswith(("-", "Unknown")):
                    found[f"{interface} {what}"] = text
    return found


def _is_of_containers(root: Path, interface: str) -> bool:
    """Return whether it is a bridge or a tunnel, which goes up and down with containers; its ports are counted."""
    with suppress(OSError, ValueError):
        folder = root / SYSFS_NET / interface
        return any((folder / sign).exists() for sign in ("bridge", "tun_flags"))
    return False


def _of_tcp(root: Path) -> dict[str, int]:
    """Return how many segments TCP sent, and sent again (RFC 4022: tcpOutSegs, tcpRetransSegs)."""
    with suppress(OSError, ValueError, KeyError):
        lines = [line.split() for line in (root / _SNMP).read_text().splitlines() if line.startswith("Tcp:")]
        names, values = lines[0], lines[1]
        tcp = dict(zip(names, values, strict=True))
        return {"tcp sent": int(tcp["OutSegs"]), "tcp resent": int(tcp["RetransSegs"])}
    return {}


def _of_cores(root: Path) -> dict[str, int]:
    """Return how often cores were throttled for their temperature (Linux `drivers/thermal/intel/therm_throt.c`)."""
    total = 0
    found = False
    with suppress(OSError, ValueError):
        for file in (root / _THROTTLED).glob("cpu[0-9]*/thermal_throttle/core_throttle_count"):
            total, found = total + int(file.read_text()), True
    return {"cpu throttled": total} if found else {}


def _ticks(root: Path) -> tuple[int, int]:
    """Return the ticks that the host of a virtual machine took, and all ticks."""
    with suppress(OSError, ValueError, IndexError):
        _name, *columns = (root / _STAT).read_text().splitlines()[0].split()
        ticks = [int(word) for word in columns[:_COLUMNS]]
        return ticks[_STEAL], sum(ticks)
    return 0, 0
