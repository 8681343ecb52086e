"""NCCL_COMM_ID as NCCL reads it, and which address lies in whose subnet."""

from __future__ import annotations

import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ncclcheck.model.facts import Address, Interface
from ncclcheck.nccl.subnet import HostName, RemoteAddress, Unreadable, is_in_subnet, parse_comm_id, scope_of
from tests.fact_builders import interface


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("10.0.0.9:5000", RemoteAddress("10.0.0.9")),
        ("10.0.0.9", RemoteAddress("10.0.0.9")),
        ("10.0.0.9:5000,10.0.1.9:5000", RemoteAddress("10.0.0.9")),
        ("10.9:5000", RemoteAddress("10.0.0.9")),
        ("0x0a000009:1", RemoteAddress("10.0.0.9")),
        ("010.0.0.1:1", RemoteAddress("8.0.0.1")),
        ("08.0.0.1:1", HostName("08.0.0.1")),
        ("10.0.0.256:1", HostName("10.0.0.256")),
        ("1.2.3.4.5:1", HostName("1.2.3.4.5")),
        ("node01:5000", HostName("node01")),
        ("[fd00::9]:5000", RemoteAddress("fd00::9")),
        ("[FD00:0::9]:5000", RemoteAddress("fd00::9")),
        ("[fe80::9%eth1]:5000", RemoteAddress("fe80::9", 3)),
        ("[fe80::9%nothing]:5000", RemoteAddress("fe80::9", 0)),
        ("[fe80::9]:5000", RemoteAddress("fe80::9", 0)),
        ("[node01]:5000", HostName("node01")),
    ],
)
def test_a_value_names_an_address_or_a_host(
    machine: list[Interface], value: str, expected: RemoteAddress | HostName
) -> None:
    assert parse_comm_id(value, machine) == expected


@pytest.mark.parametrize("value", ["", "x", ":5000", ",", "[fd00::9:5000", "[fd00::9"])
def test_what_nccl_refuses_is_unreadable_with_the_reason(machine: list[Interface], value: str) -> None:
    found = parse_comm_id(value, machine)
    assert isinstance(found, Unreadable)
    assert found.why


@given(st.from_regex(r"\A(0x[0-9a-f]{1,9}|[0-9]{1,11})(\.(0x[0-9a-f]{1,3}|[0-9]{1,4})){0,4}\Z"))
def test_numbers_with_dots_are_read_as_the_c_library_reads_them(text: str) -> None:
    try:
        expected: RemoteAddress | HostName = RemoteAddress(socket.inet_ntoa(socket.inet_aton(text)))
    except OSError:
        expected = HostName(text)
    if len(text) > 1:  # one character counts as unset
        assert parse_comm_id(f"{text}:5000", ()) == expected


def v4(text: str, prefix: int) -> Address:
    return Address("inet", text, prefix, "eth0")


def v6(text: str, prefix: int = 64) -> Address:
    return Address("inet6", text, prefix, "eth0")


@pytest.mark.parametrize(
    ("local", "remote", "inside"),
    [
        (v4("10.0.0.1", 24), "10.0.0.255", True),
        (v4("10.0.0.1", 24), "10.0.1.1", False),
        (v4("10.0.0.1", 31), "10.0.0.0", True),
        (v4("10.0.0.1", 32), "10.0.0.1", True),
        (v4("10.0.0.1", 32), "10.0.0.2", False),
        (v4("10.0.0.1", 0), "8.8.8.8", True),
        (v4("0.0.0.1", 0), "::1", False),
        (v6("fd00::1"), "fd00::ffff", True),
        (v6("fd00::1"), "fd00:0:0:1::1", False),
        (v6("fd00::1", 0), "10.0.0.1", False),
        (v4("not an address", 24), "10.0.0.1", False),
        (v4("10.0.0.1", 77), "10.0.0.1", False),
        (v4("10.0.0.1", 24), "garbage", False),
    ],
)
def test_an_address_is_in_the_subnet_of_another(local: Address, remote: str, inside: bool) -> None:
    assert is_in_subnet(local, RemoteAddress(remote), 0) is inside


def test_link_local_addresses_are_near_only_in_the_same_scope() -> None:
    local = v6("fe80::1%eth0")
    assert is_in_subnet(local, RemoteAddress("fe80::2", 2), 2)
    assert not is_in_subnet(local, RemoteAddress("fe80::2", 0), 2)
    assert is_in_subnet(v4("10.0.0.1", 24), RemoteAddress("10.0.0.2", 7), 0)  # IPv4 has no scopes


@pytest.mark.parametrize(
    ("address", "scope"),
    [("fe80::1", 5), ("FE80::1", 5), ("febf::1", 5), ("fec0::1", 0), ("fd00::1", 0), ("::1", 0)],
)
def test_only_link_local_addresses_have_the_scope_of_their_interface(address: str, scope: int) -> None:
    assert scope_of(interface("eth0", index=5), v6(address)) == scope


def test_a_scope_the_kernel_gave_counts() -> None:
    assert scope_of(interface("eth0", index=5), replace(v6("fe80::1"), scope_id=9)) == 9
    assert scope_of(interface("eth0", index=5), v4("169.254.0.1", 16)) == 0
