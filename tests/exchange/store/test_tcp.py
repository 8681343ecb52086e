"""The store with real TCPStore servers, and with programs that are none."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import torch.distributed

from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.join.first import hold_port, listen
from ncclcheck.exchange.probe.dial import dial
from ncclcheck.exchange.store.deadline_store import DeadlineStore
from ncclcheck.exchange.store.opening import join, serve
from ncclcheck.exchange.store.tcp import PACKET_BYTES
from ncclcheck.model.fact import Missing

pytestmark = pytest.mark.slow  # imports torch


def test_what_one_sets_the_other_gets() -> None:
    server = serve(0, "run/", Deadline(30))
    assert not isinstance(server, Missing)
    client = join("127.0.0.1", server.port, "run/", Deadline(10))
    assert not isinstance(client, Missing)
    assert client.set("a", b"\x00\xff") is None
    assert server.get("a") == b"\x00\xff"
    assert client.add("n", 2) == 2
    assert client.wait("a", Deadline(1)) == b"\x00\xff"


def test_a_document_may_be_larger_than_the_server_takes_at_once() -> None:
    server = serve(0, "run/", Deadline(30))
    assert not isinstance(server, Missing)
    client = join("127.0.0.1", server.port, "run/", Deadline(10))
    assert not isinstance(client, Missing)
    document = bytes(range(256)) * (9 << 12)
    assert client.set_document("report", document) is None
    assert not isinstance(server.wait("report", Deadline(5)), Missing)  # what is set is not acknowledged
    assert server.get_document("report") == document
    assert client.set_document("empty", b"") is None
    assert server.wait("empty", Deadline(5)) == b"="
    assert server.get_document("empty") == b""


def test_documents_are_read_together_and_which_ones_are_there_only_where_that_is_asked() -> None:
    server = serve(0, "run/", Deadline(30))
    assert not isinstance(server, Missing)
    client = join("127.0.0.1", server.port, "run/", Deadline(10))
    assert not isinstance(client, Missing)
    documents = {f"answer/0/{ticket}": bytes([ticket]) * (40 * ticket) for ticket in range(100)}
    assert client.set_documents(documents) is None
    assert client.get_document("answer/0/99") == documents["answer/0/99"]
    assert server.get_documents(tuple(documents)) == documents
    asked = ("answer/0/1", "answer/0/2", "answer/0/100")
    assert server.get_documents(asked, thorough=False) == {}
    assert server.get_documents(asked) == {key: documents[key] for key in asked[:2]}


def test_what_a_client_waits_for_is_pushed_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_CPP_LOG_LEVEL", "ERROR")
    server = serve(0, "run/", Deadline(30))
    assert not isinstance(server, Missing)
    client = join("127.0.0.1", server.port, "run/", Deadline(10), waits=True)
    assert not isinstance(client, Missing)
    monkeypatch.setattr(DeadlineStore, "wait", polled)
    threading.Timer(0.3, server.set, ("step/0", b"go")).start()
    assert client.wait("step/0", Deadline(20)) == b"go"
    monkeypatch.undo()
    late = client.wait("step/1", Deadline(0.2))
    assert isinstance(late, Missing)
    assert late.missing == "timeout"
    assert client.get("step/0") == b"go"
    server.close()
    assert isinstance(client.wait("step/1", Deadline(20)), Missing)
    assert client.lost is not None


def polled(*_: object) -> None:
    raise AssertionError("the key was polled")


def test_no_connection_to_a_held_port_has_a_large_packet() -> None:
    held = hold_port(0)
    assert isinstance(held, socket.socket)
    assert listen(held) is None
    server = serve(held, "run/", Deadline(30))
    assert not isinstance(server, Missing)
    assert server.get("small-packets") == b"1"
    with socket.create_connection(("127.0.0.1", server.port), timeout=5) as connection:
        assert 0 < connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG) <= PACKET_BYTES
    client = join("127.0.0.1", server.port, "run/", Deadline(10))
    assert not isinstance(client, Missing)
    assert client.set_document("facts/1", bytes(70_000)) is None
    assert server.wait("facts/1", Deadline(5)) == b"=" + bytes(70_000)


def test_a_client_that_sends_100_mb_loses_its_connection_and_nobody_else_anything() -> None:
    server = serve(0, "run/", Deadline(30))
    assert not isinstance(server, Missing)
    client = join("127.0.0.1", server.port, "run/", Deadline(10))
    assert not isinstance(client, Missing)
    client.set("facts", b"x" * (100 << 20))
    assert isinstance(client.get("facts"), Missing)
    assert server.get("facts") == Missing("absent", "facts is not set")
    assert server.set("still", b"here") is None


def test_a_key_that_nobody_sets_is_absent_now_and_late_at_the_deadline() -> None:
    server = serve(0, "run/", Deadline(30))
    assert not isinstance(server, Missing)
    assert server.get("b") == Missing("absent", "b is not set")
    late = server.wait("b", Deadline(0.2))
    assert isinstance(late, Missing)
    assert late.missing == "timeout"
    assert server.lost is None


def test_runs_under_other_prefixes_do_not_meet() -> None:
    server = serve(0, "one/", Deadline(30))
    assert not isinstance(server, Missing)
    other = join("127.0.0.1", server.port, "two/", Deadline(10))
    assert not isinstance(other, Missing)
    server.set("a", b"1")
    assert isinstance(other.get("a"), Missing)


def test_a_program_that_accepts_and_says_nothing_is_no_store_within_the_deadline() -> None:
    with socket.create_server(("127.0.0.1", 0)) as foreign:
        started = time.monotonic()
        store = join("127.0.0.1", foreign.getsockname()[1], "run/", Deadline(3))
    assert isinstance(store, Missing)
    assert time.monotonic() - started < 2 * 3  # its time is spent once


def test_a_program_that_talks_first_is_no_store() -> None:
    with socket.create_server(("127.0.0.1", 0)) as foreign:

        def greet() -> None:
            connection, _ = foreign.accept()
            with connection:
                connection.sendall(b"SSH-2.0-OpenSSH_9.2p1\r\n")
                connection.recv(1)

        threading.Thread(target=greet, daemon=True).start()
        assert isinstance(join("127.0.0.1", foreign.getsockname()[1], "run/", Deadline(3)), Missing)


@pytest.mark.parametrize(
    ("error", "is_bug"), [(NotImplementedError("no fd"), True), (RuntimeError("EADDRINUSE"), False)]
)
def test_a_bug_in_serving_is_raised_and_nobody_waits_at_the_port(
    monkeypatch: pytest.MonkeyPatch, error: Exception, is_bug: bool
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(torch.distributed, "TCPStore", broken)
    held = hold_port(0)
    assert isinstance(held, socket.socket)
    assert listen(held) is None
    port = held.getsockname()[1]
    with socket.create_connection(("127.0.0.1", port), timeout=5) as waiting:
        if is_bug:
            with pytest.raises(NotImplementedError, match="no fd"):
                serve(held, "run/", Deadline(30))
        else:
            assert serve(held, "run/", Deadline(30)) == Missing("error", "RuntimeError: EADDRINUSE")
        with pytest.raises(ConnectionResetError):
            waiting.recv(1)
    assert dial(["127.0.0.1"], port, Deadline(2))[0] == "refused"


def test_a_bug_in_joining_is_raised_and_no_program_is_called_foreign(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise TypeError("unexpected keyword argument")

    monkeypatch.setattr(torch.distributed, "TCPStore", broken)
    with pytest.raises(TypeError, match="unexpected"):
        join("127.0.0.1", 29500, "run/", Deadline(30))


def test_a_store_listens_beside_a_held_socket_that_does_not_and_keeps_the_port() -> None:
    """As with torch 2.4 to 2.7, whose server takes no socket."""
    held = hold_port(0)
    assert isinstance(held, socket.socket)
    port = held.getsockname()[1]
    with socket.socket() as stranger, pytest.raises(OSError, match="in use"):
        stranger.bind(("0.0.0.0", port))  # noqa: S104 (as the store has it)
    server = serve(held, "run/", Deadline(30))
    assert not isinstance(server, Missing)
    assert server.port == port
    assert held.fileno() == -1
    client = join("127.0.0.1", port, "run/", Deadline(10))
    assert not isinstance(client, Missing)
    assert client.set("a", b"1") is None
    assert server.wait("a", Deadline(5)) == b"1"


def test_a_port_on_which_another_program_listens_meanwhile_is_in_use() -> None:
    held = hold_port(0)
    assert isinstance(held, socket.socket)
    with socket.socket(held.family) as quicker:
        quicker.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        quicker.bind(held.getsockname()[:2])
        quicker.listen()
        found = serve(held, "run/", Deadline(30))
    assert isinstance(found, Missing)
    assert "EADDRINUSE" in found.detail


def test_a_torch_that_cannot_be_imported_is_tried_once(tmp_path: Path) -> None:
    package = tmp_path / "torch" / "__init__.py"
    package.parent.mkdir()
    package.write_text("print('tried', flush=True)\nraise RuntimeError('no devices')\n")
    program = (
        "from ncclcheck.exchange.deadline import Deadline\n"
        "from ncclcheck.exchange.store.tcp import loaded_torch\n"
        "for _ in range(2): print(loaded_torch(Deadline(30)))\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{Path(__file__).parents[3]}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    first, *told = ended.stdout.splitlines()
    assert (first, len(told), len(set(told))) == ("tried", 2, 1), ended.stdout
    assert "torch cannot be imported: RuntimeError: no devices" in told[0]
