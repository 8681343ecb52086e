"""Torch's c10d rendezvous: which node serves its store, decided by torch's rule and by where the name leads."""

from __future__ import annotations

import ipaddress
import socket
import time

from msgspec.structs import replace

from ncclcheck import timeouts
from ncclcheck.facts.bounded_call import start
from ncclcheck.facts.network.names import resolve
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.formats.addresses import is_loopback
from ncclcheck.model.launch import NOT_RANKED, Launch


def placed(
    launch: Launch, own_addresses: frozenset[str], deadline_s: float = timeouts.RENDEZVOUS_RESOLVE_S
) -> Launch:
    """Return the launch with `serves_store` decided, and node rank 0 where other nodes will call this node.

    That is the node that torch takes for the host (`--rdzv-conf is_host` decides, else `takes_itself_for_host`), and
    also the one that has the endpoint's address though torch does not notice: it then says so. Every other node gets
    its rank when it joins. `own_addresses` are this node's addresses.
    """
    host, end = launch.master_addr or "", time.monotonic() + deadline_s
    rule = start(takes_itself_for_host, host)
    addresses = resolve(host, deadline_s)
    chosen = launch.serves_store
    serves: Fact[bool] = rule.result(max(end - time.monotonic(), 0.1)) if chosen is None else chosen
    serves_store = not isinstance(serves, Missing) and serves
    is_called = not isinstance(addresses, Missing) and any(
        address in own_addresses and not is_loopback(address) for address in addresses
    )
    rank = 0 if serves_store or is_called else NOT_RANKED
    return replace(launch, serves_store=serves_store, node_rank=rank, rank=rank)


def takes_itself_for_host(host: str) -> bool:
    """Return whether torch, on this machine, would serve the store of the endpoint `host`.

    As torch 2.13 compares: localhost and loopback, the host name, its canonical names, and the addresses of both
    (torch/distributed/elastic/rendezvous/utils.py, _matches_machine_hostname). An alias of this machine, or an address
    of a second interface, is not recognised.
    """
    try:
        literal = ipaddress.ip_address(host)
    except ValueError:
        literal = None
    name = socket.gethostname()
    if host in ("localhost", name) or (literal is not None and literal.is_loopback):
        return True
    theirs = {address for address, _ in _looked_up(host)}
    return any(
        canonical == host or address in theirs or address == str(literal)
        for address, canonical in _looked_up(name)
    )


def _looked_up(name: str) -> list[tuple[str, str]]:
    """Return addresses and canonical name of getaddrinfo; nothing where it gives none."""
    try:
        found = socket.getaddrinfo(name, None, proto=socket.IPPROTO_TCP, flags=socket.AI_CANONNAME)
    except (OSError, UnicodeError):
        return []
    return [(str(address[0]), canonical) for _, _, _, canonical, address in found]
