"""Datagrams that tell a node that it hears node 0, though node 0 does not hear it."""

from __future__ import annotations

import socket

from ncclcheck.exchange.one_way import Listener, call
from tests.waiting import until


def _heard(listener: Listener) -> str:
    until(lambda: listener.heard(60.0), "the call was heard")
    return listener.heard(60.0)


def test_a_node_knows_from_where_it_was_called_last() -> None:
    listener = Listener("token")
    listener.open()
    assert listener.heard(60.0) == ""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as caller:
        caller.sendto(b"another", ("127.0.0.1", listener.port))
        assert listener.heard(60.0) == ""
        caller.sendto(b"token", ("127.0.0.1", listener.port))
        assert _heard(listener) == "127.0.0.1"
    assert listener.heard(0.0) == ""
    listener.close()
    assert (listener.port, listener.heard(0.0)) == (0, "")


def _send_and_receive() -> None:
    """Return once a datagram over loopback has arrived."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        receiver.settimeout(30)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.sendto(b"x", receiver.getsockname())
        assert receiver.recv(1) == b"x"


def test_a_call_goes_to_the_node_s_own_addresses_and_fails_silently() -> None:
    listener = Listener("token")
    listener.open()
    call(
        ["127.0.0.1", "::1", "localhost", "a-name.invalid", "fe80::1", "ff02::1"],
        listener.port,
        "token",
    )
    _send_and_receive()  # what was sent before has arrived, too
    assert listener.heard(60.0) == ""  # the loopback of node 0 is not that of the node
    listener.close()
