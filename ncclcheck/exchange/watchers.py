"""Where the watchers of a running job meet: a store that node 0's watcher serves beside the job, without torch.

The master port is the job's own, so another one is taken: the same on all nodes, found by trying a few in turn.
"""

from __future__ import annotations

import socket

from msgspec import Struct

from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.join.first import hold_port
from ncclcheck.exchange.store.base import Store
from ncclcheck.exchange.store.keyed import join_keyed
from ncclcheck.exchange.store.opening import serve_with_key
from ncclcheck.exchange.trust.handshake import Caller
from ncclcheck.exchange.trust.run_key import RunKey
from ncclcheck.exchange.trust.trust import Trust
from ncclcheck.model.fact import Missing
from ncclcheck.model.launch import Launch
from ncclcheck.timeouts import WATCH_CALL_S

# Below the ports that the kernel gives to connections (32768 and up), and far from those that jobs choose.
_BELOW_MASTER = 10_007
_LEAST_PORT = 1024
_TRIED = 4
_SHORT = "ncclcheck watch: no key"  # the default without a key: it keeps no process out


class Meeting(Struct, frozen=True):
    """Whose watchers meet, and what they trust. `port`: as the user gave it, else 0."""

    launch: Launch
    host: str
    trust: Trust
    port: int = 0

    @property
    def ports(self) -> tuple[int, ...]:
        """Return the ports at which node 0's watcher may listen, in the order in which they are tried."""
        if self.port:
            return (self.port,)
        master = self.launch.master_port
        first = master - _BELOW_MASTER if master - _BELOW_MASTER >= _LEAST_PORT else master + _BELOW_MASTER
        return tuple(range(first, first + _TRIED))

    @property
    def prefix(self) -> str:
        """Return what tells this job from another one at the same address."""
        return f"ncclcheck-watch/{self.launch.job_id}/{self.launch.master_port}"


def serve_watchers(meeting: Meeting) -> Store | Missing:
    """Return the store that this node serves for the watchers of all nodes."""
    last = "no port"
    for port in meeting.ports:
        held = hold_port(port)
        if isinstance(held, socket.socket):
            return serve_with_key(held, _trusted(meeting.trust), meeting.prefix, None)
        last = held[1]
    return Missing("error", last)


def join_watchers(meeting: Meeting) -> Store | Missing:
    """Return a client of the store that node 0's watcher serves; Missing where it is not reached just now."""
    caller = Caller(meeting.prefix, meeting.host, meeting.launch.node_rank)
    last = Missing("timeout", "node 0 does not answer")
    for port in meeting.ports:
        address = (meeting.launch.master_addr or "", port)
        found = join_keyed(address, _trusted(meeting.trust), caller, Deadline(WATCH_CALL_S / _TRIED))
        if not isinstance(found, Missing):
            return found
        if last.missing != "denied":
            last = found
    return last


def _trusted(trust: Trust) -> Trust:
    return trust if trust.key is not None or trust.asks_munge else Trust(RunKey(_SHORT.encode(), ""))
