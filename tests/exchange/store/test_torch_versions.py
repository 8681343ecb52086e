"""How a TCPStore is made with every torch since 2.2: a constructor that behaves as a version's does."""

from __future__ import annotations

from typing import Any

import pytest

from ncclcheck.exchange.store.torch_versions import (
    is_own_bug,
    is_set,
    make_store,
    read,
    says_port_in_use,
    takes_socket,
)

NO_SOCKET = (
    "The libuv TCPStore backend does not support initialization with an listen fd. Please switch to the legacy "
    'TCPStore by setting environment variable USE_LIBUV to "0".'
)  # torch 2.4 to 2.7


def older_libuv(host: str, port: int, **options: Any) -> tuple[str, int, dict[str, Any]]:
    if options.get("use_libuv", True) and options.get("master_listen_fd") is not None:
        raise NotImplementedError(NO_SOCKET)
    return host, port, options


def without_libuv(host: str, port: int, **options: Any) -> tuple[str, int, dict[str, Any]]:
    if options.get("use_libuv", True):
        raise RuntimeError("use_libuv was requested but PyTorch was built without libuv support")
    return host, port, options


def any_option(host: str, port: int, **options: Any) -> tuple[str, int, dict[str, Any]]:
    return host, port, options


def test_a_server_that_takes_no_socket_is_replaced_by_the_older_one() -> None:
    made = make_store(older_libuv, "127.0.0.1", 29500, is_master=True, master_listen_fd=7)
    assert made == ("127.0.0.1", 29500, {"is_master": True, "master_listen_fd": 7, "use_libuv": False})


def test_a_server_that_takes_the_socket_is_the_default_one() -> None:
    made = make_store(any_option, "127.0.0.1", 29500, is_master=True, master_listen_fd=7)
    assert made == ("127.0.0.1", 29500, {"is_master": True, "master_listen_fd": 7})


def test_a_torch_without_libuv_serves_and_joins_all_the_same() -> None:
    assert make_store(without_libuv, "node1", 29500, is_master=False)[2] == {
        "is_master": False,
        "use_libuv": False,
    }


def no_such_socket(_host: str, _port: int, **options: Any) -> None:
    assert options["master_listen_fd"] == -1
    raise RuntimeError("getsockname failed for fd -1: (errno: 9 - Bad file descriptor)")


def test_whether_a_server_takes_a_socket_is_asked_and_not_read_from_a_version() -> None:
    assert not takes_socket(older_libuv)
    assert takes_socket(no_such_socket)


def test_what_has_nothing_to_do_with_libuv_is_tried_once() -> None:
    tries = []

    def in_use(*_: Any, **options: Any) -> None:
        tries.append(options)
        raise RuntimeError("EADDRINUSE")

    with pytest.raises(RuntimeError, match="EADDRINUSE"):
        make_store(in_use, "127.0.0.1", 29500)
    assert tries == [{}]


class Torch22Store:
    """torch 2.2's, which has no `check`; `compare_set` as TCPStoreBackend.cpp of 2.2.2 has it."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}

    def compare_set(self, key: str, expected: str, desired: str) -> bytes:
        if key not in self.values:
            if expected:
                return expected.encode()
            self.values[key] = desired.encode()
        elif self.values[key] == expected.encode():
            self.values[key] = desired.encode()
        return self.values[key]


class Torch23Store(Torch22Store):
    """torch's since 2.3: whoever asks for what is not set waits, so that is an error here."""

    def check(self, keys: list[str]) -> bool:
        return all(key in self.values for key in keys)

    def get(self, key: str) -> bytes:
        return self.values[key]


@pytest.mark.parametrize("store", [Torch22Store(), Torch23Store()], ids=["2.2", "2.3"])
def test_what_is_not_set_is_read_at_once_and_stays_unset(store: Torch22Store) -> None:
    assert read(store, "a") is None
    assert not is_set(store, "a")
    assert store.values == {}
    store.values["a"] = b""
    assert read(store, "a") == b""
    assert is_set(store, "a")


@pytest.mark.parametrize(
    "error", [NotImplementedError("x"), TypeError("x"), AttributeError("x"), NameError("x")]
)
@pytest.mark.parametrize("serving", [True, False])
def test_an_error_of_a_program_is_a_bug(error: Exception, serving: bool) -> None:
    assert is_own_bug(error, serving=serving)


@pytest.mark.parametrize("error", [RuntimeError("EADDRINUSE"), PermissionError(13, "denied"), MemoryError()])
@pytest.mark.parametrize("serving", [True, False])
def test_an_error_of_the_machine_or_the_network_is_none(error: Exception, serving: bool) -> None:
    assert not is_own_bug(error, serving=serving)


@pytest.mark.parametrize("error", [ValueError("vector::_M_default_append"), IndexError("x")])
def test_a_peer_can_cause_errors_of_size_and_our_own_server_cannot(error: Exception) -> None:
    assert not is_own_bug(error, serving=False)
    assert is_own_bug(error, serving=True)


def test_torch_says_in_two_ways_that_a_port_is_held() -> None:
    assert says_port_in_use("The server socket has failed to bind: errno 98 - Address already in use")
    assert says_port_in_use("EADDRINUSE")
    assert not says_port_in_use("The client socket has timed out")
