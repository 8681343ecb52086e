"""Whether the kernel of a node that says nothing still answers: then the network works, and a process does not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from concurrent.futures import Future

from ncclcheck.exchange.background import in_background
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.probe.dial import DialOutcome, dial
from ncclcheck.timeouts import KERNEL_ANSWERS_S

MOST_ASKED = 16  # hosts at the same time: one that answers is enough to know that the network works
# The last of Linux's default ip_local_port_range, where NCCL and Gloo listen: a firewall lets it pass
_PORT = 60999
_ANSWERS: frozenset[DialOutcome] = frozenset({"connected", "refused"})


class KernelAnswers:
    """Asks the kernels of hosts that say nothing. State: what was asked since each of them fell silent."""

    def __init__(self, address_of: Mapping[str, str], port: int = _PORT) -> None:
        shared = Counter(address_of.values())  # an address of several hosts leads to none of them for sure
        self._address_of = {host: address for host, address in address_of.items() if shared[address] == 1}
        self._port = port
        self._asked: dict[str, Future[tuple[DialOutcome, str]]] = {}

    def look(self, silent: Collection[str]) -> dict[str, bool | None]:
        """Ask those that have just fallen silent, forget those that speak, and return what is known; never blocks."""
        self._asked = {host: answer for host, answer in self._asked.items() if host in silent}
        for host in silent:
            if host in self._address_of and host not in self._asked and len(self._asked) < MOST_ASKED:
                self._asked[host] = self._ask(self._address_of[host])
        return {host: _answers(answer) for host, answer in self._asked.items()}

    def _ask(self, address: str) -> Future[tuple[DialOutcome, str]]:
        return in_background(lambda: dial([address], self._port, Deadline(KERNEL_ANSWERS_S)), "kernel")


def _answers(asked: Future[tuple[DialOutcome, str]]) -> bool | None:
    if not asked.done():
        return None
    return asked.exception() is None and asked.result()[0] in _ANSWERS
