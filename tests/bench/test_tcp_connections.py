"""The kernel says which peer does not acknowledge; a peer that is merely busy is not one."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

import pytest

from ncclcheck.bench.tcp_connections import _address, _connections, unanswered_peers

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
CUT = "   1: 01004E0A:A2C4 03004E0A:8B1F 01 0004B0A0:00000000 01:000001F4 00000005     0        0 4711 1\n"
FINE = "   2: 01004E0A:A2C6 02004E0A:8B1F 01 00000000:00000000 00:00000000 00000000     0        0 4712 1\n"


def test_the_table_is_read_with_its_retransmissions(tmp_path: Path) -> None:
    table = tmp_path / "tcp"
    table.write_text(HEAD + CUT + FINE + "garbage\n")
    assert list(_connections(table)) == [("03004E0A", "01", 5, "4711"), ("02004E0A", "01", 0, "4712")]


@pytest.mark.skipif(os.uname().machine not in ("x86_64", "aarch64"), reason="the samples are little-endian")
def test_addresses_are_in_the_order_of_the_machines_bytes() -> None:
    assert _address("03004E0A") == "10.78.0.3"
    assert _address("0000000000000000FFFF000003004E0A") == "10.78.0.3"
    assert _address("000078FD000000000000000003000000") == "fd78::3"


def test_a_peer_that_never_reads_still_acknowledges() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as client:
        client.connect(server.getsockname())
        client.setblocking(False)
        try:
            while True:
                client.send(b"x" * 65536)
        except BlockingIOError:
            time.sleep(0.5)
        assert unanswered_peers(os.getpid()) == ()


@pytest.mark.slow
def test_a_call_that_nobody_answers_is_named_once_it_was_repeated() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server:
        calls = [socket.socket() for _ in range(4)]  # more than its queue takes: the kernel drops the rest
        try:
            for call in calls:
                call.setblocking(False)
                call.connect_ex(server.getsockname())
            deadline = time.monotonic() + 5
            while not unanswered_peers(os.getpid()) and time.monotonic() < deadline:
                time.sleep(0.05)
            assert unanswered_peers(os.getpid()) == ("127.0.0.1",)
        finally:
            for call in calls:
                call.close()


def test_a_process_that_is_gone_has_no_peers() -> None:
    assert unanswered_peers(2**22 + 1) == ()
