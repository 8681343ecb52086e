"""NCCL's words in every spelling it has used."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncclcheck.facts.nccl.nccl_words import (
    SocketAddress,
    bootstrap_line,
    decode_unique_id,
    version_text,
    warnings,
)
from ncclcheck.model.fact import Missing

# Real ids of 2.27.7 and 2.28.9, from machines with one IPv4 address.
_REAL_2_27 = "c8187ea58868cb740200c4f1c0000202"
_REAL_2_28 = "8527efeb30c12b300200987bc0000202"


def _blob(text: str) -> bytes:
    return bytes.fromhex(text).ljust(128, b"\0")


def test_the_ipv4_address_of_real_ids() -> None:
    assert decode_unique_id(_blob(_REAL_2_27)) == SocketAddress("192.0.2.2", 50417)
    assert decode_unique_id(_blob(_REAL_2_28)) == SocketAddress("192.0.2.2", 39035)


def test_an_ipv6_address_with_its_scope() -> None:
    address = bytes.fromhex("fe80000000000000fc000000fe000001")
    blob = b"m" * 8 + b"\x0a\x00" + b"\x1f\x90" + bytes(4) + address + b"\x04\0\0\0"
    assert decode_unique_id(blob.ljust(128, b"\0")) == SocketAddress("fe80::fc00:0:fe00:1", 8080, 4)


@given(st.binary(max_size=200))
def test_any_bytes_are_an_address_or_missing(blob: bytes) -> None:
    assert isinstance(decode_unique_id(blob), SocketAddress | Missing)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (22809, "2.28.9"),
        (22707, "2.27.7"),
        (21805, "2.18.5"),
        (20903, "2.9.3"),
        (2708, "2.7.8"),
        (2408, "2.4.8"),
    ],
)
def test_versions_of_the_old_and_the_new_scheme(number: int, text: str) -> None:
    assert version_text(number) == text


@pytest.mark.parametrize(
    ("line", "interface", "address"),
    [
        ("n1:7:7 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>", "eth0", "10.0.0.1"),
        ("n1:7:7 [32512] NCCL INFO Bootstrap: Using ibs0:10.9.0.1<0>", "ibs0", "10.9.0.1"),
        ("n1:7:7 [0] NCCL INFO Bootstrap: Using  eth0.100:10.9.0.1<0>", "eth0.100", "10.9.0.1"),
        ("n1:7:7 [0] NCCL INFO Bootstrap: Using eth0:7:10.9.0.1<0>", "eth0", "10.9.0.1"),
        ("n1:7:7 [0] NCCL INFO Bootstrap: Using eth1:fd00::1<0>", "eth1", "fd00::1"),
        ("n1:7:7 [0] NCCL INFO Bootstrap: Using v1:fe80::1%v1<0>", "v1", "fe80::1"),
        ("n1:7:7 [0] NCCL INFO Bootstrap: Using eth0.5:fe80::1%eth0.5<0>", "eth0.5", "fe80::1"),
        ("n1:7:7 [0] NCCL INFO Bootstrap : Using lo:::1<0>", "lo", "::1"),
        ("n1:7:7 [0] NCCL INFO Bootstrap : Using t:::ffff:10.0.0.1<0>", "t", "::ffff:10.0.0.1"),
    ],
)
def test_the_choice_of_interface(line: str, interface: str, address: str) -> None:
    found = bootstrap_line(f"n1:7:7 [0] NCCL INFO ENV/Plugin: Could not find\n{line}\nmore\n")
    assert found is not None
    assert (found.interface, found.address) == (interface, address)
    assert found.text.startswith("Bootstrap")


def test_other_lines_are_no_choice() -> None:
    assert (
        bootstrap_line(
            "NCCL INFO Bootstrap: Using mlx5_0:1\nNCCL INFO NET/Socket : Using [0]eth0:10.0.0.1<0>"
        )
        is None
    )


def test_warnings_lose_what_stands_before_them() -> None:
    log = (
        "\n[2025-11-21 03:18:01] n1:7:7 [0] bootstrap.cc:93 NCCL WARN Bootstrap : no socket interface found\n"
        "n1:7:7 [0] NCCL INFO init.cc:110 -> 5\n\nn1:7:7 [0] misc/socket.cc:1 (f) NCCL WARN second \n"
    )
    assert warnings(log) == ("Bootstrap : no socket interface found", "second")
