"""The nodes that `isolate` names as lists to paste: never run by us."""

from __future__ import annotations

import shlex
from typing import Literal, TypeAlias, get_args

from ncclcheck.model.benchmarks.isolation import BadNode
from ncclcheck.model.report import Report
from ncclcheck.report.text.fold import fold_hosts
from ncclcheck.report.text.plain import plain

NodeList: TypeAlias = Literal["exclude", "hosts", "hostfile", "drain-slurm", "cordon"]
NODE_LISTS: tuple[NodeList, ...] = get_args(NodeList)
_WORDS = {"hang": "hangs", "died": "fails in a test", "unreachable": "cannot be reached"}


def bad_nodes(report: Report) -> tuple[BadNode, ...]:
    """Return the nodes to leave out: not those that are bad only at times, nor those of a group behind a slow path."""
    nodes = report.isolation.nodes if report.isolation is not None else ()
    return tuple(node for node in nodes if node.verdict != "intermittent")


def node_list(report: Report, kind: NodeList) -> str:
    """Return the list, which ends with a new line; nothing where it has no entry.

    exclude: the bad nodes as Slurm and ClusterShell write them. hosts: the others, likewise. hostfile: the others, one
    per line. drain-slurm, cordon: a command for each bad node.
    """
    bad = bad_nodes(report)
    left_out = {node.host for node in bad}
    others = [node.host for node in report.nodes if node.host not in left_out]
    if kind == "exclude":
        lines = [fold_hosts(left_out)] if left_out else []
    elif kind == "hosts":
        lines = [fold_hosts(others)] if others else []
    elif kind == "hostfile":
        lines = [plain(host) for host in others]
    elif kind == "drain-slurm":
        lines = [drain_command(node) for node in bad]
    else:
        lines = [f"kubectl cordon {_word(node.host)}" for node in bad]
    return "".join(f"{text}\n" for text in lines)


def drain_command(node: BadNode) -> str:
    """Return the command that drains a node in Slurm, with the reason."""
    reason = shlex.quote(f"ncclcheck isolate: {reason_of(node)}")
    return f"scontrol update NodeName={_word(node.host)} State=DRAIN Reason={reason}"


def reason_of(node: BadNode) -> str:
    """Return why the node is named, in a few words."""
    if node.verdict in _WORDS:
        return _WORDS[node.verdict]
    parts = [("sends", node.sends), ("receives", node.receives)]
    ways = [f"{way} {part:.0%}" for way, part in parts if part is not None]
    return f"slow, {' and '.join(ways)} of usual" if ways else "slow"


def _word(host: str) -> str:
    return shlex.quote(plain(host))
