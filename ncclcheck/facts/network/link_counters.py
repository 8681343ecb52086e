"""Reads what network interfaces count of errors: once with the facts, and again when the network was measured.

Of the interfaces that carry a job's data: those with an address, and the cards. A Kubernetes node has hundreds of
others, one per pod.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from ncclcheck import timeouts
from ncclcheck.facts.bounded_call import within
from ncclcheck.facts.network.card_statistics import card_statistics
from ncclcheck.facts.network.interface_files import SYSFS_NET
from ncclcheck.facts.section import Section
from ncclcheck.facts.text_files import read_number, readable
from ncclcheck.facts.tree import machine
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.hardware import LinkCounters
from ncclcheck.model.snapshot import Node

_STATISTICS = (
    "rx_errors", "rx_dropped", "rx_crc_errors", "rx_fifo_errors", "rx_missed_errors", "rx_over_errors",
    "tx_errors", "tx_dropped", "tx_carrier_errors", "tx_fifo_errors",
)  # fmt: skip
_CARRIER = "carrier_changes"  # Linux 3.15, net/core/net-sysfs.c
_MOST_INTERFACES = 1024
_NOT_AGAIN = Missing("absent", "read once only: what grows shows when the network is measured")


def read_link_counters(
    root: Path = Path("/"),
    with_address: Collection[str] = (),
    of_card: Callable[[str], dict[str, int]] = lambda _: {},
    *,
    zeros: bool = False,
) -> Fact[tuple[LinkCounters, ...]]:
    """Return the counters of the interfaces of the machine below `root`, as those before a run.

    Of those that have a device, or are in `with_address`. `of_card` returns the card's own statistics.
    `zeros`: counters of 0 are returned as well.
    """
    here = machine(root)
    names = here.names(SYSFS_NET)
    if isinstance(names, Missing):
        return names
    found = []
    for name in names:
        folder = here.folder(f"{SYSFS_NET}/{name}")
        if isinstance(folder, Missing) or not (name in with_address or folder.has("device")):
            continue
        counts = _counts(partial(_plain, name) if root == Path("/") else folder.number, folder.shown(), zeros)
        if not isinstance(counts, Missing):
            counts = {
                **{counter: count for counter, count in of_card(name).items() if count or zeros},
                **counts,
            }
        found.append(LinkCounters(readable(name), counts, _NOT_AGAIN))
    return tuple(found[:_MOST_INTERFACES])


def _plain(name: str, file: str) -> Fact[int]:
    """Return the number in a file of this machine's own /sys, which can be trusted: ten times as fast."""
    return read_number(Path("/", SYSFS_NET, name, file))


def _counts(number_in: Callable[[str], Fact[int]], shown: str, zeros: bool) -> Fact[dict[str, Fact[int]]]:
    files = {_CARRIER: _CARRIER, **{name: f"statistics/{name}" for name in _STATISTICS}}
    counts = {name: number_in(file) for name, file in files.items()}
    all_counts = {name: count for name, count in counts.items() if not _is_absent(count)}
    # Most count nothing, and there may be hundreds of interfaces: what is not there counts 0.
    reported_counts = {
        name: count for name, count in all_counts.items() if zeros or count != 0 or name == _CARRIER
    }
    return reported_counts if all_counts else Missing("absent", f"{shown}: no counters")


def _is_absent(count: Fact[int]) -> bool:
    return isinstance(count, Missing) and count.missing == "absent"


def read_own_counters(*, zeros: bool = False) -> Fact[tuple[LinkCounters, ...]]:
    """Return the counters of this machine's interfaces now, with those that its cards keep themselves."""
    import psutil

    addresses = psutil.net_if_addrs()
    with_address = {
        label.partition(":")[0]
        for label, entries in addresses.items()
        if any(_is_of_network(entry.family.name, entry.address) for entry in entries)
    }
    return read_link_counters(Path("/"), with_address, card_statistics, zeros=zeros)


def _is_of_network(family: str, address: str) -> bool:
    is_own = address.startswith(("127.", "fe80:")) or address == "::1"
    return family in ("AF_INET", "AF_INET6") and not is_own


def read_links_again(
    deadline_s: float = timeouts.COUNTERS_AGAIN_S, *, zeros: bool = False
) -> Fact[tuple[LinkCounters, ...]]:
    """Return the counters of this machine now; Missing "timeout" where a card holds up the reading."""
    return within(deadline_s, read_own_counters, zeros=zeros)


def with_counts(node: Node, counted: Mapping[str, Fact[tuple[LinkCounters, ...]]]) -> Node:
    """Return the node with what its interfaces count by now, from the last reading of each host."""
    links, now = node.facts.link_counters, counted.get(node.host, _NOT_AGAIN)
    if isinstance(links, Missing):
        return node
    after = {} if isinstance(now, Missing) else {link.interface: link.before for link in now}
    gone = Missing("absent", "the interface is not there any more")
    read = tuple(
        replace(link, after=now if isinstance(now, Missing) else after.get(link.interface, gone))
        for link in links
    )
    return replace(node, facts=replace(node.facts, link_counters=read))


LINK_COUNTERS = Section(
    {"link_counters": "/sys/class/net/*/statistics and carrier_changes; ETHTOOL_GSTATS of the card"},
    read=lambda _: read_own_counters(),
    read_tree=lambda here: read_link_counters(here.root),
)
