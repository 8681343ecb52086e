"""Who may connect to a socket: the filter is run over headers of packets, and taken by this kernel."""

from __future__ import annotations

import ipaddress
import socket

import pytest

from ncclcheck.exchange.store.source_filter import admit_only, program

KEEP = 0xFFFFFFFF


def passes(sources: list[str], source: str, interface: int = 2) -> bool:
    """Return what the filter does with a packet of that source, by the rules of linux/filter.h."""
    address = ipaddress.ip_address(source)
    start = 12 if address.version == 4 else 8
    header = bytes([address.version << 4]).ljust(start, b"\0") + address.packed + bytes(16)
    instructions, at, held = program(sources), 0, 0
    while True:
        code, if_so, if_not, operand = instructions[at]
        at += 1
        offset = (operand - (-0x100000 & KEEP)) & KEEP
        if code == 0x20:
            is_interface = operand == (-0x1000 + 8) & KEEP
            held = interface if is_interface else int.from_bytes(header[offset : offset + 4], "big")
        elif code == 0x30:
            held = header[offset]
        elif code == 0x74:
            held >>= operand
        elif code == 0x15:
            at += if_so if held == operand else if_not
        elif code == 0x05:
            at += operand
        else:
            assert code == 0x06
            return operand == KEEP


@pytest.mark.parametrize("source", ["10.0.0.1", "10.0.0.2", "fd00::1:2"])
def test_members_pass_and_nobody_else(source: str) -> None:
    members = ["10.0.0.2", "::ffff:10.0.0.1", "fd00::1:2", "fe80::1%eth0"]
    assert passes(members, source)
    assert not any(passes(members, stranger) for stranger in ("10.0.0.3", "fd00::1:3", "fe80::2"))


def test_before_anybody_has_come_only_this_machine_passes() -> None:
    assert passes([], "10.0.0.1", interface=1)
    assert not passes([], "10.0.0.1")
    assert not passes([], "fd00::1")


def test_nobody_passes_by_the_family_of_which_no_member_is() -> None:
    assert not passes(["10.0.0.1"], "2001:db8::1")
    assert not passes(["10.0.0.1"], "fe80::1")
    assert not passes(["fd00::1"], "10.0.0.1")


def test_the_kernel_takes_it_for_sockets_that_listen_and_replaces_it() -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port = listening.getsockname()[1]
        assert not admit_only(port, ["10.0.0.1"]), "it does not listen"
        listening.listen()
        assert admit_only(port, [])
        assert admit_only(port, ["10.0.0.1", "fd00::1"])
        assert not admit_only(port, [f"10.0.{number >> 8}.{number & 255}" for number in range(2000)])
        socket.create_connection(("127.0.0.1", port), 5).close()
