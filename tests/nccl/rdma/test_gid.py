"""The GID index NET/IB uses: every rule with the version at which it changed, and random tables."""

from __future__ import annotations

import ipaddress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncclcheck.model.fact import Missing
from ncclcheck.model.hardware import Gid, RdmaPort
from ncclcheck.nccl.rdma.gid import choose_gid
from tests.nccl import gid_reference
from tests.nccl.hardware import LINK_LOCAL, ROCE_GIDS, UNREAD, gid, port, roce

V = "2.28.9"
ELSEWHERE = Missing("error", "Invalid argument")
GLOBAL = "2001:0db8:0000:0001:0000:0000:0000:0001"


def index(rdma_port: RdmaPort, version: str = V, **environment: str) -> int | None:
    return choose_gid(
        rdma_port, {f"NCCL_IB_{name}": value for name, value in environment.items()}, version
    ).index


def table(*gids: Gid, **changes: Any) -> RdmaPort:
    return roce(gids=gids, **changes)


@pytest.mark.parametrize(
    ("version", "expected"), [("2.18.1", 0), ("2.20.5", 0), ("2.21.5", 3), ("2.32.3", 3)]
)
def test_roce_takes_index_0_up_to_2_20_and_chooses_from_2_21(version: str, expected: int) -> None:
    assert index(roce(), version) == expected


@pytest.mark.parametrize("version", ["2.18.1", "2.21.5", V])
@pytest.mark.parametrize(("value", "expected"), [("1", 1), ("0", 0), ("010", 8), ("5 # comment", 5)])
def test_an_explicit_index_is_taken_as_c_reads_it(version: str, value: str, expected: int) -> None:
    assert index(roce(), version, GID_INDEX=value) == expected


def test_a_negative_index_means_the_choice_and_fails_before_there_was_one() -> None:
    assert index(roce(), V, GID_INDEX="-1") == 3
    assert index(roce(), "2.20.5", GID_INDEX="-1") is None


@pytest.mark.parametrize(("version", "expected"), [("2.20.5", 3), ("2.21.5", 3), ("2.22.3", 0), (V, 0)])
def test_native_infiniband_ignores_an_explicit_index_from_2_22(version: str, expected: int) -> None:
    assert index(port(), version, GID_INDEX="3") == expected
    assert index(port(), version) == 0


def test_a_routable_gid_with_a_flid_is_taken_on_native_infiniband_from_2_22() -> None:
    routable = port(
        gids=(Gid(0, LINK_LOCAL, UNREAD, UNREAD), gid(1, "fe80:0000:0001:0002:a288:c2ff:fe10:0020"))
    )
    assert (index(routable, "2.21.5"), index(routable, "2.22.3")) == (0, 1)
    assert index(routable, V, ROUTABLE_FLID_GID_INDEX="2") == 0


def test_the_first_address_of_the_wanted_family_wins_whatever_its_version() -> None:
    assert index(table(gid(0, LINK_LOCAL, "v1"), gid(1, "10.0.0.1", "v1"))) == 1
    assert index(table(gid(0, LINK_LOCAL, "v1"), gid(1, "10.0.0.1"), gid(2, "10.0.0.2"))) == 1


def test_a_wrong_version_is_left_for_the_right_one_and_not_the_other_way() -> None:
    both = (gid(0, LINK_LOCAL, "v1"), gid(1, "10.0.0.1"), gid(2, "10.0.0.2", "v1"))
    assert index(table(*both)) == 1
    assert index(table(*both), ROCE_VERSION_NUM="1") == 2


def test_ipv6_takes_a_global_address_in_place_of_the_link_local_one() -> None:
    six = table(*ROCE_GIDS, gid(4, GLOBAL, "v1"), gid(5, GLOBAL))
    assert index(six, ADDR_FAMILY="AF_INET6") == 5
    assert index(six, ADDR_FAMILY="af_inet6") == 3
    assert index(table(*ROCE_GIDS[:2]), ADDR_FAMILY="AF_INET6") == 0


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("10.0.1.0/24", 5),
        ("10.0.0.0/8", 3),
        ("10.0.1.1/32", 5),
        ("192.168.0.0/16", 0),
        ("10.0.1.0/33", 3),
        ("10.0.1.0/-1", 0),
        ("10.0.1.0/x", 3),
        ("fd00::/64", 3),
        ("10.0.1.0", 3),
        ("", 3),
    ],
)
def test_a_range_picks_among_several_addresses_and_is_ignored_when_invalid(value: str, expected: int) -> None:
    two = table(*ROCE_GIDS, gid(4, "10.0.1.1", "v1"), gid(5, "10.0.1.1"))
    assert index(two, ADDR_RANGE=value) == expected


def test_a_range_without_a_slash_crashes_nccl_before_2_23() -> None:
    assert index(roce(), "2.22.3", ADDR_RANGE="10.0.0.1") is None
    assert index(roce(), "2.23.4", ADDR_RANGE="10.0.0.1") == 3


def test_an_ipv6_range_covers_all_128_bits() -> None:
    other = "2001:0db8:0000:0001:0000:0000:0000:0002"
    two = table(gid(0, LINK_LOCAL, "v1"), gid(1, GLOBAL), gid(2, other))
    for text, expected in ((f"{other}/128", 2), ("2001:db8:0:1::/64", 1), ("2001:db8::/129", 1)):
        assert index(two, ADDR_FAMILY="AF_INET6", ADDR_RANGE=text) == expected


def test_entries_of_another_network_namespace_are_stepped_over_from_2_26() -> None:
    foreign = (gid(0, LINK_LOCAL, ELSEWHERE), gid(2, "10.0.0.9", "v1"), gid(3, "10.0.0.9", ELSEWHERE))
    ours = (*foreign, gid(4, "10.0.0.1", "v1"), gid(5, "10.0.0.1"))
    assert (index(table(*ours), "2.25.1"), index(table(*ours), "2.26.2")) == (None, 5)
    assert "2.26" in choose_gid(table(*ours), {}, "2.25.1").reason


def test_an_unset_entry_is_taken_for_ipv6_where_the_table_begins_with_ipv4() -> None:
    four = gid(0, "10.0.0.1")
    assert index(table(four, gid_table_length=8), ADDR_FAMILY="AF_INET6") == 1
    assert index(table(four, gid_table_length=1), ADDR_FAMILY="AF_INET6") == 0
    assert index(table(four, gid_table_length=UNREAD), ADDR_FAMILY="AF_INET6") is None


def test_a_table_that_was_not_read_is_not_guessed() -> None:
    assert index(table(gid_table_length=UNREAD)) is None
    assert index(roce(gids=UNREAD)) is None
    assert index(table(gid_table_length=16)) == 0
    assert index(table(*ROCE_GIDS, gid_table_length=UNREAD)) == 3


def test_facts_that_hold_nonsense_break_nothing() -> None:
    assert index(table(gid(0, "nonsense"), gid(10**12, "10.0.0.1"), gid_table_length=10**15)) == 10**12


def test_the_reason_names_the_address() -> None:
    assert "10.0.0.1 (RoCE v2)" in choose_gid(roce(), {}, V).reason


# --- random tables against a reference that was written on its own ---------------------------------------------------

_HOST = st.sampled_from(["10.0.0.1", "10.0.0.2", "10.0.1.1", "10.1.0.1", "192.168.0.1"])
_SIX = st.sampled_from(
    [GLOBAL, LINK_LOCAL, "fd00:0001:0000:0000:0000:0000:0000:0009", "fe80:0000:0000:0001::1"]
)
_ADDRESS = st.one_of(st.none(), _HOST, _SIX.map(lambda text: ipaddress.IPv6Address(text).exploded))
_KIND = st.sampled_from(["v1", "v2", None])
_ENVIRONMENT = st.fixed_dictionaries(
    {},
    optional={
        "NCCL_IB_ADDR_FAMILY": st.sampled_from(["AF_INET", "AF_INET6", "", "ipv6"]),
        "NCCL_IB_ADDR_RANGE": st.sampled_from(
            [
                "10.0.0.0/16",
                "10.0.1.0/24",
                "10.0.0.2/32",
                "::/0",
                "2001:db8::/32",
                "fd00:1::/127",
                "x/8",
                "10.0.0.0/40",
            ]
        ),
        "NCCL_IB_ROCE_VERSION_NUM": st.sampled_from(["1", "2", "true", ""]),
        "NCCL_IB_GID_INDEX": st.sampled_from(["-1", "", "2"]),
    },
)


@given(
    st.lists(st.tuples(_ADDRESS, _KIND), min_size=1, max_size=12),
    _ENVIRONMENT,
    st.sampled_from(["2.20.5", "2.21.5", "2.23.4", "2.25.1", "2.26.2", "2.28.9", "2.32.3"]),
)
def test_random_tables(
    entries: list[tuple[str | None, str | None]], environment: dict[str, str], version: str
) -> None:
    gids = tuple(
        gid(position, address, ELSEWHERE if kind is None else kind)
        for position, (address, kind) in enumerate(entries)
        if address is not None
    )
    one = table(*gids, gid_table_length=len(entries))
    assert choose_gid(one, environment, version).index == gid_reference.index(entries, environment, version)
