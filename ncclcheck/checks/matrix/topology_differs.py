"""NC823 topology-differs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from ncclcheck.checks.hosts import named, verb
from ncclcheck.checks.matrix._matrix import unmeasured
from ncclcheck.checks.measured import measured
from ncclcheck.checks.registry import Answer, check
from ncclcheck.measure.matrix.site_differences import SiteDifference, main_switches, site_differences
from ncclcheck.model.benchmarks.matrix import FabricMatrix
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import Evidence, Finding, Fix, NotApplicable, NotKnown
from ncclcheck.model.snapshot import Snapshot

_SLURM = "SLURM_TOPOLOGY_ADDR"
_LEAST_PARTS = 2  # of such an address: a switch and the node


class _Site(Struct, frozen=True):
    """What one source says: the switch of each host of the matrix that it names."""

    source: str
    switch_of: Mapping[str, str]


@check("NC823", "topology-differs", "The measured leaves are those of the site's topology")
def topology_differs(snapshot: Snapshot) -> Iterator[Answer]:
    """Nodes that the site's topology has behind one switch are in one of the leaves that `matrix` measured.

    ## Why it matters
    The scheduler places jobs and orders their nodes by its topology file. Where the file is wrong, nodes that it takes
    for neighbours talk over the trunks, and every ring of the job crosses them more often than necessary.

    ## How to fix
    Look where the node is plugged in (`ethtool`, LLDP, `ibnetdiscover`), and fix the cabling or the file. `ncclcheck
    matrix --print slurm-tree` prints the leaves as they were measured.

    ## Source
    The measured leaves against Slurm's topology.yaml or topology.conf (`--topology FILE`, or the one in /etc/slurm) and
    against SLURM_TOPOLOGY_ADDR of the nodes (ncclcheck/measure/matrix/site_differences.py). A leaf may hold several
    switches: a trunk that nobody feels does not show. Hosts are compared by their Slurm name, their name, and their
    name without its domain. The check is unknown where the network is flat and the site has several switches, and for
    a node that belongs to no leaf.
    """
    matrix = measured(snapshot.matrix)
    yield from unmeasured(snapshot)
    if matrix is None or not matrix.is_finished:
        return
    sites = []
    topology = snapshot.bench_demands.topology
    if not isinstance(topology, Missing):
        switch_of = {host: switch.name for switch in topology.switches for host in switch.hosts}
        sites.append(_Site(topology.source, _by_host(snapshot, matrix, switch_of)))
    elif topology.missing != "absent":
        yield NotKnown(topology.detail)
    if addresses := _addresses(snapshot, matrix):
        sites.append(_Site(_SLURM, addresses))
    for site in sites:
        yield from _compared(matrix, site)
    if sites:
        yield from _in_no_leaf(matrix)
    elif isinstance(topology, Missing) and topology.missing == "absent":
        yield NotApplicable(f"{topology.detail} (--topology FILE)")


def _compared(matrix: FabricMatrix, site: _Site) -> Iterator[Answer]:
    leaves = matrix.named_leaves
    measured = [host for hosts in leaves.values() for host in hosts]
    unnamed = [host for host in measured if host not in site.switch_of]
    if len(unnamed) == len(measured):
        yield NotKnown(f"{site.source} has none of these nodes behind a switch")
        return
    if unnamed:
        yield _finding(
            f"{named(unnamed)} {verb(unnamed, 'is', 'are')} behind no switch of {site.source}",
            tuple(unnamed),
            ("no switch", "the switch of each node"),
            site,
        )
    switches = {site.switch_of[host] for host in measured if host in site.switch_of}
    if len(leaves) < 2 and len(switches) > 1:  # noqa: PLR2004 (two leaves)
        yield NotKnown(f"no leaves were felt, so the {len(switches)} switches of {site.source} do not show")
        return
    main = main_switches(leaves, site.switch_of)
    for difference in site_differences(leaves, site.switch_of):
        yield _finding(
            _about(difference, site, main),
            difference.hosts,
            (f"in {difference.leaf}", f"with the other nodes of {difference.switch}"),
            site,
        )


def _in_no_leaf(matrix: FabricMatrix) -> Iterator[NotKnown]:
    """Yield each host that was lost or is slow with all others: where it is plugged in was not seen."""
    lost = (node.host for node in matrix.nodes if node.outcome != "slow")
    for host in dict.fromkeys((*matrix.apart, *lost)):
        yield NotKnown(f"{host} belongs to no leaf", (host,))


def _about(difference: SiteDifference, site: _Site, main: Mapping[str, str]) -> str:
    hosts, switch = difference.hosts, difference.switch
    others = main[difference.leaf]
    where = f"{difference.leaf}{f', with the nodes of {others}' if others not in ('', switch) else ''}"
    conflict = (
        f"{named(hosts)} {verb(hosts, 'is', 'are')} behind {switch} in {site.source}, but measured in {where}"
    )
    if difference.home:
        return f"{conflict}; most nodes of {switch} are in {difference.home}"
    return f"{conflict}; the nodes of {switch} are spread over several leaves, none of which has most of them"


def _finding(summary: str, hosts: tuple[str, ...], seen: tuple[str, str], site: _Site) -> Finding:
    return Finding(
        "warning",
        summary,
        hosts,
        (Evidence(hosts, "leaf", *seen, f"ncclcheck matrix against {site.source}"),),
        (
            Fix(
                "look where these nodes are plugged in, and fix the cabling or the topology of the site",
                ("ncclcheck matrix --quiet --print slurm-tree",),
            ),
        ),
    )


def _by_host(snapshot: Snapshot, matrix: FabricMatrix, switch_of: Mapping[str, str]) -> dict[str, str]:
    """Return the switch of each host of the matrix, by whichever of its names the site has."""
    of_slurm = {
        node.host: environment["SLURMD_NODENAME"]
        for node, environment in snapshot.known("environment")
        if environment.get("SLURMD_NODENAME")
    }
    found = {}
    for host in (*(host for leaf in matrix.leaves for host in leaf), *matrix.apart):
        for name in (of_slurm.get(host, host), host, host.partition(".")[0]):
            if name in switch_of:
                found[host] = switch_of[name]
                break
    return found


def _addresses(snapshot: Snapshot, matrix: FabricMatrix) -> dict[str, str]:
    """Return the lowest switch of each host by its SLURM_TOPOLOGY_ADDR: `spine.leaf1.node01`, by the pattern's places.

    The plug-in without switches gives the name of the node alone.
    """
    hosts = {host for leaf in matrix.leaves for host in leaf} | set(matrix.apart)
    found = {}
    for node, environment in snapshot.known("environment"):
        kinds = environment.get(f"{_SLURM}_PATTERN", "").split(".")
        parts = environment.get(_SLURM, "").split(".", len(kinds) - 1)  # a node's name may have dots
        if node.host in hosts and len(parts) == len(kinds) >= _LEAST_PARTS and kinds[-1] == "node":
            found[node.host] = parts[-2]
    return found
