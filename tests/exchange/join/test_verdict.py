"""Only node 0 itself confirms a verdict: at its own address, of this run, and of what this node sent."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.join.verdict import (
    GivenVerdict,
    VerdictAsker,
    VerdictConfirmation,
    VerdictServer,
    ask_verdict,
)
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.deadline_store import DeadlineStore
from ncclcheck.exchange.store.memory import MemoryBackend
from ncclcheck.exchange.store.recording import RecordingStore

NONCE = "ab" * 16
HERE = "127.0.0.1"
SENT = {keys.facts(2): "one", keys.answer(0, 2): "two"}


@pytest.fixture
def server() -> Iterator[VerdictServer]:
    found = VerdictServer(NONCE)
    yield found
    found.close()


@pytest.fixture
def asker() -> VerdictAsker:
    return VerdictAsker(RecordingStore(DeadlineStore(MemoryBackend(), 0)), NONCE, 2)


def asked(server: VerdictServer, asker: VerdictAsker, sent: dict[str, str] = SENT) -> VerdictConfirmation:
    found = ask_verdict(HERE, server.port, asker, sent)
    assert isinstance(found, VerdictConfirmation), found
    return found


def test_before_there_is_a_verdict_none_is_confirmed(server: VerdictServer, asker: VerdictAsker) -> None:
    assert asked(server, asker).exit_code is None


def test_the_verdict_is_confirmed_to_who_sent_what_was_judged(
    server: VerdictServer, asker: VerdictAsker
) -> None:
    server.give(GivenVerdict(0, "digest", dict(SENT)))
    found = asked(server, asker)
    assert (found.exit_code, found.changed, found.report) == (0, (), "digest")


def test_a_message_that_somebody_replaced_is_told(server: VerdictServer, asker: VerdictAsker) -> None:
    server.give(GivenVerdict(0, "", {**SENT, keys.answer(0, 2): "forged"}))
    assert asked(server, asker).changed == (keys.answer(0, 2),)
    server.give(
        GivenVerdict(0, "", {})
    )  # facts that nobody read were not judged; an answer may have come too late
    assert asked(server, asker).changed == (keys.facts(2),)


def test_who_is_of_another_run_hears_nothing(server: VerdictServer, asker: VerdictAsker) -> None:
    server.give(GivenVerdict(0, "", {}))
    stranger = VerdictAsker(asker.store, "cd" * 16, 2)
    assert isinstance(ask_verdict(HERE, server.port, stranger, SENT), str)


def test_nobody_listens_and_no_port_of_a_service_is_called(
    server: VerdictServer, asker: VerdictAsker
) -> None:
    server.close()
    assert "did not confirm" in str(ask_verdict(HERE, server.port, asker, SENT))
    assert ask_verdict(HERE, 22, asker, SENT) == "port 22 is none of a listener"


@pytest.mark.parametrize(
    "says",
    [
        b"",
        b"HTTP/1.1 200 OK\r\n\r\n",
        b'{"protocol":"ncclcheck-verdict-1","challenge":"x","exit_code":0}\n',
        b"x" * 200_000,
    ],
)
def test_another_service_there_confirms_nothing(says: bytes, asker: VerdictAsker) -> None:
    with socket.create_server((HERE, 0)) as listener:

        def serve() -> None:
            with suppress(OSError):
                connection, _ = listener.accept()
                with connection:
                    connection.recv(1000)
                    connection.sendall(says)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        deadline = Deadline(20)
        assert isinstance(ask_verdict(HERE, listener.getsockname()[1], asker, SENT), str)
        assert deadline.left() > 10
        thread.join(5)


def test_garbage_and_silent_callers_do_not_keep_others_from_their_answer(
    server: VerdictServer, asker: VerdictAsker
) -> None:
    server.give(GivenVerdict(1, "", dict(SENT)))
    silent = [socket.create_connection((HERE, server.port)) for _ in range(20)]
    for number, connection in enumerate(silent[:10]):
        connection.sendall([b"\x80\x04.\n", b"[]\n", b"x" * 100_000, b"\n"][number % 4])
    assert asked(server, asker).exit_code == 1
    for connection in silent:
        connection.close()
