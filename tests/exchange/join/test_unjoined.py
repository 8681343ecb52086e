"""What accepts connections and cannot be joined: node 0 that ended or hangs is told from a stranger."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from ncclcheck.exchange.join.master import describe, unmarked
from ncclcheck.exchange.join.unjoined import unjoined
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import MasterPath
from tests.exchange.join.test_master import node_1

SILENCE = Missing("timeout", "no TCPStore answer within 12 s")


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


@pytest.fixture
def datagrams(listener: socket.socket) -> Iterator[socket.socket]:
    """The port's number over UDP, as node 0 holds it; nobody reads from it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as held:
        held.bind(listener.getsockname())
        yield held


def way_to(listener: socket.socket) -> MasterPath:
    return describe("127.0.0.1", listener.getsockname()[1], ("127.0.0.1",), frozenset())


def serve(listener: socket.socket, treat: Callable[[socket.socket], None]) -> None:
    def work() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection, suppress(OSError):
                    treat(connection)

    threading.Thread(target=work, daemon=True).start()


def answer_http(connection: socket.socket) -> None:
    connection.recv(1000)
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def test_a_port_where_nothing_listens_any_more_was_lost(listener: socket.socket) -> None:
    way = way_to(listener)
    listener.close()
    assert unjoined(way, SILENCE, is_alive=False).outcome == "lost"
    assert "ended" in unjoined(way, SILENCE, is_alive=False).detail


@pytest.mark.usefixtures("datagrams")
def test_a_process_that_never_answers_and_holds_node_0s_ports_hangs(listener: socket.socket) -> None:
    found = unjoined(way_to(listener), SILENCE, is_alive=False)
    assert found.outcome == "lost"
    assert "stopped or hangs" in found.detail


def test_a_silent_program_whose_machine_refuses_datagrams_is_foreign(listener: socket.socket) -> None:
    found = unjoined(way_to(listener), SILENCE, is_alive=False)
    assert found.outcome == "foreign"
    assert SILENCE.detail in found.detail


@pytest.mark.usefixtures("datagrams")
@pytest.mark.parametrize("treat", [answer_http, socket.socket.close], ids=["http", "closes"])
def test_a_program_that_answers_something_else_is_foreign(
    listener: socket.socket, treat: Callable[[socket.socket], None]
) -> None:
    serve(listener, treat)
    assert unjoined(way_to(listener), SILENCE, is_alive=False).outcome == "foreign"


@pytest.mark.usefixtures("datagrams")
def test_a_silent_program_beside_a_node_0_that_answers_is_foreign(listener: socket.socket) -> None:
    assert unjoined(way_to(listener), SILENCE, is_alive=True).outcome == "foreign"


def test_node_0_that_ended_before_its_mark_is_no_other_job(listener: socket.socket) -> None:
    search, way = node_1(listener), way_to(listener)
    listener.close()
    assert unmarked(search, way, Missing("timeout")).outcome == "lost"
