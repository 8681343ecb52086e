"""How a TCPStore is made with every torch since 2.2: a constructor that behaves as a version's does."""

from __future__ import annotations

from typing import Any

import pytest

from ncclcheck.exchange.store.versions import is_own_bug, make_store

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


def test_what_has_nothing_to_do_with_libuv_is_tried_once() -> None:
    tries = []

    def in_use(*_: Any, **options: Any) -> None:
        tries.append(options)
        raise RuntimeError("EADDRINUSE")

    with pytest.raises(RuntimeError, match="EADDRINUSE"):
        make_store(in_use, "127.0.0.1", 29500)
    assert tries == [{}]


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
