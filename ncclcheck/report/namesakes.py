"""Nodes whose host name another node has too: which one it is, for tables, and their words in lines to paste."""

from __future__ import annotations

from msgspec import Struct

from ncclcheck.model.formats.host_words import is_host_word
from ncclcheck.model.formats.shared_names import shared_names
from ncclcheck.model.report import Report


class Namesake(Struct, frozen=True):
    """A node that calls itself `name`, as another one does; the address that NCCL uses there, "" if not known."""

    name: str
    address: str
    node_rank: int

    @property
    def words(self) -> str:
        """Return which node it is."""
        return f"{self.address or 'address not known'}, node rank {self.node_rank}"


def namesakes(report: Report) -> dict[str, Namesake]:
    """Return the nodes that share their host name, by their names in the report."""
    shared = shared_names((node.host, node.node_rank) for node in report.nodes)
    addresses = {entry.host: entry.address for entry in report.nccl} if shared else {}
    return {
        node.host: Namesake(shared[node.host], _address(addresses.get(node.host)), node.node_rank)
        for node in report.nodes
        if node.host in shared
    }


def _address(text: str | None) -> str:
    return text if text is not None and is_host_word(text) else ""


def list_words(report: Report) -> dict[str, str]:
    """Return the word for each node in a list of hosts: its name, or its address where another node has that name.

    A node without such a word is in no list.
    """
    shared = namesakes(report)
    words = {
        node.host: shared[node.host].address if node.host in shared else node.host for node in report.nodes
    }
    return {host: word for host, word in words.items() if is_host_word(word)}


def left_out(report: Report, host: str) -> str:
    """Return the comment in place of a command about a node that has no name of its own."""
    namesake = namesakes(report).get(host)
    if namesake is None or not is_host_word(namesake.name):
        return "# a node is left out: what it calls itself is no host name"
    return f"# a node is left out: {namesake.name} at {namesake.words}: another node has the same name"
