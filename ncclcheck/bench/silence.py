"""Which nodes of a benchmark are lost, from what they and their kernels no longer say."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct


class Network(Struct, frozen=True):
    """What is known of the network between the hosts.

    `kernel_answers`: of hosts that say nothing, whether their kernels answer a connection request; None: being asked.
    `delivers`: something of another host arrived at node 0 when the silence began.
    """

    host_of_address: Mapping[str, str] = {}
    kernel_answers: Mapping[str, bool | None] = {}
    delivers: bool = False


def lost_hosts(
    hosts: Sequence[str], silent: Collection[str], unheard_s: Mapping[str, float], network: Network
) -> dict[str, str] | None:
    """Return the hosts that are lost, each with a sentence; None while it is not clear which these are.

    Where all nodes but node 0 are silent at once, and their kernels too, node 0 has lost its network. A kernel that
    answers shows that the network works: then the others have lost their processes. Where node 0 does not hear itself
    either, its calls to its own store are lost.
    """
    followers = set(hosts) - {hosts[0]}
    if len(followers) > 1 and followers <= set(silent):
        answers = [network.kernel_answers.get(host) for host in followers]
        works = network.delivers or any(answers)
        if not works and any(network.kernel_answers.get(host, False) is None for host in followers):
            return None
        if not works or hosts[0] in silent:
            alone = f"no word from any of the other {len(followers)} nodes: its own network rather than all of theirs"
            return {hosts[0]: alone}
    return {host: _words(unheard_s[host], network.kernel_answers.get(host)) for host in silent}


def _words(unheard_s: float, kernel_answers: bool | None) -> str:
    silence = f"no word from its node for {unheard_s:.0f} s"
    if kernel_answers is None:
        return silence
    if kernel_answers:
        return f"{silence}, though its kernel answers: ncclcheck ended or hangs there"
    return f"{silence}, and its kernel does not answer either"
