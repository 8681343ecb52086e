"""The kernel's counts of connections of other processes, over netlink."""

from __future__ import annotations

import os
import socket

import pytest

from ncclcheck.facts.job.connections import connections_of
from ncclcheck.facts.job.rank_processes import RankProcess
from ncclcheck.facts.network.interfaces import addresses_now

ADDRESS = next((name for name in addresses_now() if "." in name and not name.startswith("127.")), "")


@pytest.mark.skipif(not ADDRESS, reason="needs an IPv4 address that is not loopback")
def test_what_a_peer_does_not_read_stands_in_the_queue_and_other_processes_are_left_out() -> None:
    with (
        socket.create_server((ADDRESS, 0)) as listener,
        socket.create_connection(listener.getsockname()) as calling,
        listener.accept()[0] as called,
    ):
        calling.setblocking(False)
        while calling.send(bytes(1 << 20)) == 1 << 20:
            pass  # until the peer's buffer is full
        ours = RankProcess(3, os.getpid(), "0")
        found = {connection.local: connection for connection in connections_of([ours])}
        assert found[calling.getsockname()].unacknowledged > 0
        assert found[calling.getsockname()].peer == called.getsockname()
        assert found[called.getsockname()].unacknowledged == 0
        assert found[called.getsockname()].rank == 3
        segments = found[called.getsockname()].segments_in
        assert segments is None or segments > 0
        assert connections_of([]) == ()
