"""NC221 hostname-long."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.gpus import has_no_gpu
from ncclcheck.checks.hosts import job_size, named, not_reported, verb
from ncclcheck.checks.ifname_settings import GLOO_VARIABLE
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import NodeFacts
from ncclcheck.model.finding import Evidence, Finding, Fix, NotApplicable, Severity
from ncclcheck.model.snapshot import Node, Snapshot
from ncclcheck.nccl import ifname

_HOST_NAME_MAX = 64  # limits.h: without the zero byte at the end, which Gloo leaves no room for


@check("NC221", "hostname-long", "Gloo can read the host name", needs=("names", "environment"))
def hostname_long(snapshot: Snapshot) -> Iterator[Answer]:
    """The host name of every node has at most 63 characters.

    ## Why it matters
    Linux allows 64. Without GLOO_SOCKET_IFNAME, torch asks for the host name with room for 64 bytes, and the name needs
    one more: `init_process_group` with Gloo fails with "File name too long". NCCL jobs use Gloo as well, for CPU
    groups, barriers and checkpoints.

    ## How to fix
    Set GLOO_SOCKET_IFNAME to the exact name of the interface between the nodes, or give the node a shorter name.

    ## Source
    torch/csrc/distributed/c10d/ProcessGroupGloo.cpp (createDefaultDevice): gethostname with HOST_NAME_MAX; glibc's
    gethostname fails with ENAMETOOLONG where the name and its zero byte do not fit.
    """
    if job_size(snapshot) == 1:
        yield NotApplicable("one node: Gloo is not needed between nodes")
        return
    long = [node for node, names in snapshot.known("names") if len(names.hostname.encode()) >= _HOST_NAME_MAX]
    without = tuple(node for node in long if not _has_gloo_interface(node.facts))
    if without:
        yield _finding("error" if has_no_gpu(snapshot) else "warning", without)
    if harmless := tuple(node for node in long if node not in without):
        yield _finding("info", harmless)
    yield from not_reported(snapshot)


def _has_gloo_interface(facts: NodeFacts) -> bool:
    return not isinstance(facts.environment, Missing) and ifname.is_set(facts.environment.get(GLOO_VARIABLE))


def _finding(severity: Severity, nodes: tuple[Node, ...]) -> Finding:
    hosts = tuple(node.host for node in nodes)
    consequence = (
        f"{GLOO_VARIABLE} is set, so Gloo does not ask for the host name"
        if severity == "info"
        else 'Gloo fails with "File name too long"'
    )
    return Finding(
        severity,
        f"the host {verb(hosts, 'name', 'names')} of {named(hosts)} {verb(hosts, 'has', 'have')} {_HOST_NAME_MAX} "
        f"characters: {consequence}",
        hosts,
        tuple(
            Evidence(
                (node.host,), "length of the host name", str(_HOST_NAME_MAX), "at most 63", "gethostname(2)"
            )
            for node in nodes
        ),
        (
            Fix(
                f"set {GLOO_VARIABLE} to the exact name of the interface between the nodes, or shorten the name",
                ("hostname | wc -c", "sudo hostnamectl set-hostname NAME"),
            ),
        ),
    )
