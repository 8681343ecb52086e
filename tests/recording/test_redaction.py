"""Replacements that keep relations: prefixes, makers, lengths; and lead back to nothing."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from scripts.recording.redaction import Redaction

HERE = Redaction(b"key", ("alpha.example.org", "alpha"))


Address = ipaddress.IPv4Address | ipaddress.IPv6Address
KINDS = [
    ipaddress.ip_network(text) for text in ("172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fec0::/10")
]


def kind(address: Address) -> tuple[bool, ...]:
    """Two of one kind keep what they share."""
    first = int(address) >> (address.max_prefixlen - 8)
    firsts = [first == own for own in (0, 10, 127, 169, 0xFC, 0xFD, 0xFE, 0xFF)]
    return *firsts, *(address in network for network in KINDS)


def shared_bits(first: Address, second: Address) -> int:
    return first.max_prefixlen - (int(first) ^ int(second)).bit_length()


@settings(max_examples=60)
@given(st.integers(1 << 24, (1 << 32) - 1), st.integers(0, 31))
def test_addresses_share_as_many_bits_as_before(number: int, place: int) -> None:
    one, other = ipaddress.IPv4Address(number), ipaddress.IPv4Address(number ^ (1 << place))
    assume(kind(one) == kind(other) and "127.0.0.1" not in (str(one), str(other)))
    told = [ipaddress.IPv4Address(HERE.address(address)) for address in (one, other)]
    assert shared_bits(told[0], told[1]) == 31 - place


@settings(max_examples=40)
@given(st.integers(1 << 120, (1 << 128) - 1), st.integers(0, 127))
def test_so_do_those_of_ipv6(number: int, place: int) -> None:
    one, other = ipaddress.IPv6Address(number), ipaddress.IPv6Address(number ^ (1 << place))
    assume(kind(one) == kind(other))
    told = [ipaddress.IPv6Address(HERE.address(address)) for address in (one, other)]
    assert shared_bits(told[0], told[1]) == 127 - place


@pytest.mark.parametrize(
    ("text", "network"),
    [
        ("10.1.2.3", "10.0.0.0/8"),
        ("172.20.1.1", "172.16.0.0/12"),
        ("192.168.7.7", "192.168.0.0/16"),
        ("127.0.1.1", "127.0.0.0/8"),
        ("169.254.3.1", "169.254.0.0/16"),
        ("fe80::1:2", "fe80::/64"),
        ("fd00::1", "fc00::/7"),
    ],
)
def test_what_kind_of_address_it_is_stays(text: str, network: str) -> None:
    told = ipaddress.ip_address(HERE.address(ipaddress.ip_address(text)))
    assert told in ipaddress.ip_network(network)
    assert str(told) != text


def test_gids_keep_their_form_their_family_and_the_maker_of_the_card() -> None:
    link_local = HERE.gid("fe80:0000:0000:0000:a288:c2ff:fe10:0020")
    assert link_local.startswith("fe80:0000:0000:0000:a288:c2")
    assert link_local != "fe80:0000:0000:0000:a288:c2ff:fe10:0020"
    mapped = HERE.gid("0000:0000:0000:0000:0000:ffff:0a64:000b")
    assert ipaddress.IPv6Address(mapped).ipv4_mapped == ipaddress.ip_address(
        HERE.address(ipaddress.ip_address("10.100.0.11"))
    )
    assert HERE.gid("0000:0000:0000:0000:0000:0000:0000:0000") == "0000:0000:0000:0000:0000:0000:0000:0000"


def test_a_guid_and_the_gid_that_is_made_of_it_stay_related() -> None:
    guid = HERE.guid("a088:c203:0010:0020")
    assert guid.startswith("a088:c2")
    assert HERE.gid("fe80:0000:0000:0000:a088:c203:0010:0020") == f"fe80:0000:0000:0000:{guid}"


def test_names_and_numbers_in_a_text_are_replaced_alike() -> None:
    text = "alpha:29500 beta alphabet 10.1.2.3 from aa:bb:cc:dd:ee:ff of GPU-3f2c5a00-1111-2222-3333-444455556666"
    told = HERE.text(text)
    assert told == HERE.text(text)
    assert told.startswith(f"{HERE.host('alpha.example.org')}:29500 beta alphabet 10.")
    for gone in ("alpha:", "10.1.2.3", "dd:ee:ff", "3f2c5a00"):
        assert gone not in told
    assert "aa:bb:cc:" in told


@pytest.mark.parametrize(
    "text", ["28.39.1002", "12:30:59", "4: ACTIVE", "6.8.0-45-generic", "1.2.3.4.5", "0x10de"]
)
def test_versions_and_times_stay(text: str) -> None:
    assert HERE.text(text) == text


def test_another_key_gives_other_names() -> None:
    assert Redaction(b"other").host("alpha") != HERE.host("alpha")
    assert HERE.host("alpha") == HERE.host("ALPHA.example.org")
