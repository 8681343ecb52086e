"""The nodes that `isolate` names as lists to paste: never run by us."""

from __future__ import annotations

import shlex

from ncclcheck.model.benchmarks.isolation import BadNode
from ncclcheck.model.formats.choices import NodeList
from ncclcheck.model.formats.host_words import is_host_word
from ncclcheck.model.report import Report
from ncclcheck.report.namesakes import left_out, list_words, namesakes
from ncclcheck.report.text.fold import fold_hosts

_WORDS = {"hang": "hangs", "died": "fails in a test", "unreachable": "cannot be reached"}


def bad_nodes(report: Report) -> tuple[BadNode, ...]:
    """Return the nodes to leave out: not those that are bad only at times, nor those of a group behind a slow path."""
    nodes = report.isolation.nodes if report.isolation is not None else ()
    return tuple(node for node in nodes if node.verdict != "intermittent")


def node_list(report: Report, kind: NodeList) -> str:
    """Return the list, which ends with a new line; nothing where it has no entry.

    exclude: the bad nodes as Slurm and ClusterShell write them. hosts: the others, likewise. hostfile: the others, one
    per line. drain-slurm, cordon: a command for each bad node. A node whose name is no host name is in none of them:
    there it would mean something else, such as all nodes. Of nodes with the same name the lists have the address.
    Nothing where no pairs of nodes were tested.
    """
    if report.isolation is None:
        return ""
    bad = bad_nodes(report)
    bad_hosts = {node.host for node in bad}
    words = list_words(report)
    others = [word for host, word in words.items() if host not in bad_hosts]
    if kind in ("exclude", "hosts"):
        named = [words.get(host, host) for host in bad_hosts]
        listed = [word for word in named if is_host_word(word)] if kind == "exclude" else others
        lines = [fold_hosts(listed)] if listed else []
    elif kind == "hostfile":
        lines = others
    else:
        command = drain_command if kind == "drain-slurm" else cordon_command
        lines = [command(node) if is_host_word(node.host) else left_out(report, node.host) for node in bad]
    return "".join(f"{text}\n" for text in lines)


def unlisted(report: Report) -> tuple[str, ...]:
    """Return the names of the nodes that no list has, since they are no host names."""
    shared = namesakes(report)
    return tuple(
        node.host for node in report.nodes if not is_host_word(node.host) and node.host not in shared
    )


def cordon_command(node: BadNode) -> str:
    """Return the command that keeps further pods from a node."""
    return f"kubectl cordon {node.host}"


def drain_command(node: BadNode) -> str:
    """Return the command that drains a node in Slurm, with the reason."""
    reason = shlex.quote(f"ncclcheck isolate: {reason_of(node)}")
    return f"scontrol update NodeName={node.host} State=DRAIN Reason={reason}"


def reason_of(node: BadNode) -> str:
    """Return why the node is named, in a few words."""
    if node.verdict in _WORDS:
        return _WORDS[node.verdict]
    parts = [("sends", node.sends), ("receives", node.receives)]
    shares = [f"{direction} {part:.0%}" for direction, part in parts if part is not None]
    return f"slow, {' and '.join(shares)} of usual" if shares else "slow"
