"""Which callers never heard our answer, as the kernel lists them."""

from __future__ import annotations

import socket

from ncclcheck.exchange.probe.half_open import _callers, half_open

TABLE = """  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:7531 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0 100 0 0 10 0
   1: 0300000A:7531 0200000A:C350 03 00000000:00000000 01:00000064 00000000     0        0 0 1 0
   2: 0300000A:7532 0400000A:C351 03 00000000:00000000 01:00000064 00000000     0        0 0 1 0
   3: 0300000A:7531 0500000A:C352 01 00000000:00000000 00:00000000 00000000     0        0 2 1 0
   4: 0000000000000000FFFF00000300000A:7531 0000000000000000FFFF00000600000A:C353 03 0 1:1 0 0 0 0 1 0
   5: cut
"""


def test_only_unfinished_handshakes_on_our_ports_count() -> None:
    assert sorted(_callers(TABLE, {0x7531})) == ["10.0.0.2", "10.0.0.6"]


def test_a_finished_connection_is_no_half_open_one() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()):
        assert half_open({server.getsockname()[1]}) == frozenset()
