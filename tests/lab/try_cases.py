"""Two nodes with several networks of known speed, and what `bench --try` has to say of them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests.lab import faults
from tests.lab.namespaces import call, inside
from tests.lab.nodes import Lab
from tests.lab.topologies import bucket, limit

USUAL_MBIT = 100
WORDS = ("bench", "--no-preflight", "--ops", "all_reduce", "--timeout", "900")
SIZES = ("--sizes", "256K")
TRADE_SIZES = ("--sizes", "1K,1M")
_DRIFT_EVERY_S = 1.0


def build(lab: Lab, faster: float) -> None:
    """Shape eth0, and give the nodes eth1, which is faster by that part, and eth2, which drops everything."""
    lab.add_network("eth1", "10.79.0")
    lab.add_network("eth2", "10.80.0")
    for node in lab.nodes:
        faults.shape(node, f"{USUAL_MBIT}mbit")
        faults.shape(node, f"{round(USUAL_MBIT * (1 + faster) * 1000)}kbit", interface="eth1")
        call(inside(node.namespace, ["iptables", "-w", "-A", "INPUT", "-i", "eth2", "-j", "DROP"]))


def build_trade(lab: Lab) -> None:
    """eth0 carries much, but each packet takes as long as 30,000 bytes; eth1 carries little, and small packets at once.

    So eth1 is faster at 1 KiB and slower at 1 MiB. (A kernel of a lab may have no netem, which would delay packets.)
    """
    lab.add_network("eth1", "10.79.0")
    for node in lab.nodes:
        faults.shape(node, "30mbit", interface="eth1")
        for namespace, port in ((node.namespace, "eth0"), (lab.switch.namespace, f"eth0-{node.number}")):
            words = ["tc", "qdisc", "replace", "dev", port, "root", *bucket("200mbit"), "mpu", "30000"]
            call(inside(namespace, words))


@contextmanager
def drifting(lab: Lab, faster: float, *, least: float = 0.5, over_s: float = 40.0) -> Iterator[None]:
    """Both networks become slower meanwhile, from second to second, down to that part of their rate, and stay so."""
    over = threading.Event()

    def drift() -> None:
        steps = round(over_s / _DRIFT_EVERY_S)
        for step in range(1, steps + 1):
            if over.wait(_DRIFT_EVERY_S):
                return
            part = 1 - (1 - least) * step / steps
            for interface, rate in (("eth0", USUAL_MBIT), ("eth1", USUAL_MBIT * (1 + faster))):
                for node in lab.nodes:
                    limit(node.namespace, interface, f"{round(1000 * rate * part)}kbit")

    drifts = threading.Thread(target=drift)
    drifts.start()
    try:
        yield
    finally:
        over.set()
        drifts.join()


def arms(*interfaces: str) -> list[str]:
    """Return the words that try to bind Gloo to each of these interfaces."""
    return [word for name in interfaces for word in ("--try", f"GLOO_SOCKET_IFNAME={name}")]
