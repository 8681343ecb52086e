"""Two nodes with three networks: eth0 as usual, eth1 faster by some per cent, eth2 on which nothing arrives."""

from __future__ import annotations

from tests.lab import faults
from tests.lab.namespaces import call, inside
from tests.lab.nodes import Lab

USUAL_MBIT = 100
WORDS = ("bench", "--no-preflight", "--ops", "all_reduce", "--sizes", "256K", "--timeout", "900")


def build(lab: Lab, faster: float) -> None:
    """Shape eth0, and give the nodes eth1, which is faster by that part, and eth2, which drops everything."""
    lab.add_network("eth1", "10.79.0")
    lab.add_network("eth2", "10.80.0")
    for node in lab.nodes:
        faults.shape(node, f"{USUAL_MBIT}mbit")
        faults.shape(node, f"{round(USUAL_MBIT * (1 + faster) * 1000)}kbit", interface="eth1")
        call(inside(node.namespace, ["iptables", "-w", "-A", "INPUT", "-i", "eth2", "-j", "DROP"]))


def arms(*interfaces: str) -> list[str]:
    """Return the words that try to bind Gloo to each of these interfaces."""
    return [word for name in interfaces for word in ("--try", f"GLOO_SOCKET_IFNAME={name}")]
