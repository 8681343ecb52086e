"""A first glance at a line, in bytes: may it mean something? Nearly all lines of a large log do not.

A line that is let through needlessly costs 50 microseconds; one that is not let through is never seen again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

# Beginnings of NCCL INFO messages that carry nothing for us, five bytes each (they come by the thousand).
QUIET_STARTS = frozenset(
    b"INFO " + start
    for start in (
        b"Trees", b"Ring ", b"Ring:", b"Tree ", b"Setti", b"P2P C", b"Conne", b"threa", b"Laten", b"Patte", b"=== S",
        b"Algor", b"CC On", b"CC Of", b"Init ", b"New p", b"MNNVL", b"RAS c",
    )
)  # fmt: skip

# Parts of words in lower case. A line that has a topic holds one of them (tests/logs/test_glance.py proves it by the
# tables of topics), and so does what the readers of exceptions, ends, connections and collectives look for.
_LINES_OF_PARTS = """
error|fail|xcept|traceback|warn|arning:|imed out|imed-out|imeout|kill|oom|out of|xid|nvrm|dmar|amd-vi
io_page_fault|refused|eset by|unable|cannot|annot |could not|couldn|doesn|does not|missing|mismatch|symbol
closed|signal|sig|exit|errno|eaddr|emfile|enfile|joined|worker_count|assert|corrupt|nccl v|torch|mlx|ibv_|ibstat
infini|memlock|ulimit|locked mem|shm|mtu|rp_filter| dev |acsctl|reqredir|iommu|istio|envoy|linkerd|upstream
cluster|fabric|imex|mnnvl|sharp|ofi|fi_get|ucx|ucp_|uct_|#  rank|rank  |host  |rank of|ranks has|len(|batches
communication|collective|traffic|finished|complete|done|concluded| ok|root cause|state:|found|available
supported|exist|no |peermem|peer_mem|denied|rdzv|master-addr|master_addr|cancell|limit|ecc|bus |core dumped
\tv1\t|\tv2\t|reference for|eset-in|tokens/s|murdered|reachable|exhausted|sufficient|illegal|invalid|compatib
steps_per_epoch|n_batches|num_batches|duplicate|multiple ranks|multicast|network policy|networkpolicy|dns|rdma
gid|fe80|loopback|resol|broken|truncated|magic|preamble|provider|plugin|libnccl|libibverbs|initialized|not per
cuda_error|cuda fail|kernel image|ordinal|driver|numpy|wrong|parity|uncorrect|off the bus|gpu is lost|row remap
different|requires|unexpected|unhandled|unspecified|misaligned|segfault|fault|double free|stack smash|abort|mpi_
terminate|stale file|no space|too many|too_many|too long|emsgsize|frag|differs|martian|reverse path|address
checked in|ping |rendezvous|async |catas|linkup|link down|link is|link_layer|port_|connectx|uverbs|completion
idle|quiet|offline|rollout|generation|slower|below the|instead|expected|rss |allocat|is not a |notadirectory
permission|desync|sampler|loader|p2p is|peer access|peer mapping|access is not|peer_access|aer: |pcie|nvswitch
verification|success|nodename|name or service|gai |getaddrinfo|temporary|watchdog|stuck|lost|dropped|no route
bad request|blackhole|mixed local|across ranks|call to |sendbytes|recvvalue|family|ifa !=|endpoint|enabled
shared memory|numa|size changed|invalid usage|memoryerror|trying to connect|conflict|socket|physical s
"""
_PARTS = tuple(part for line in _LINES_OF_PARTS.strip("\n").split("\n") for part in line.split("|"))


def _grouped(parts: Iterable[str]) -> re.Pattern[bytes]:
    """One expression for all: grouped by first letter, it tries a few letters where a plain list tries them all."""
    groups: dict[str, list[str]] = {}
    for part in parts:
        groups.setdefault(part[0], []).append(re.escape(part[1:]))
    return re.compile(
        "|".join(f"{re.escape(first)}(?:{'|'.join(rest)})" for first, rest in groups.items()).encode()
    )


_search = _grouped(_PARTS).search


def may_mean_something(line: bytes) -> bool:
    """True if the line has a part of a word that lines with a meaning have."""
    return _search(line.lower()) is not None
