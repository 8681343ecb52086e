"""The choice of interface: the vectors that were verified with the real libraries, and the rules they do not show."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from ncclcheck.model.facts import Address, Interface
from ncclcheck.nccl.socket_interface import choose, is_running, network_interfaces
from tests.fact_builders import interface

OLD, NEW = ("2.18.3", "2.21.5"), ("2.28.9", "2.30.7", "2.32.3")
ALL = OLD + NEW
Keep = Callable[..., list[Interface]]
LO, ETH0, ETH1 = ("lo", "127.0.0.1"), ("eth0", "10.0.0.1"), ("eth1", "10.0.1.1")


def chosen(machine: list[Interface], version: str, **environment: str) -> tuple[str | None, str | None]:
    choice = choose(machine, {f"NCCL_{name}": value for name, value in environment.items()}, version)
    assert (choice.result_code == 0) == (choice.interface is not None)
    return choice.interface, choice.address


@pytest.mark.parametrize("version", ALL)
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, ETH0),
        ("eth1", ETH1),
        ("eth1,eth0", ETH0),
        ("eth", ETH0),
        ("e", ETH0),
        ("^", ETH0),
        ("", ETH0),
        ("=eth1", ETH1),
        ("eth1:5", ETH1),
        ("^eth0", LO),
        ("^eth0,eth1", LO),
        ("^eth0,^lo", LO),
        ("^docker", LO),
        ("^docker0", LO),
        (",,", LO),
        ("lo", LO),
        ("^=eth0,lo", ETH1),
        ("^lo", ETH0),
        ("^lo,docker", ETH0),
    ],
)
def test_a_value_leads_to(
    machine: list[Interface], version: str, value: str | None, expected: tuple[str, str]
) -> None:
    environment = {} if value is None else {"SOCKET_IFNAME": value}
    assert chosen(machine, version, **environment) == expected


@pytest.mark.parametrize("value", ["=eth", " eth1", "10.0.1.1", "nosuch", "=^eth0", "^,", "^:5"])
def test_a_value_that_matches_nothing_fails_with_the_code_of_the_version(
    machine: list[Interface], value: str
) -> None:
    codes = [
        choose(machine, {"NCCL_SOCKET_IFNAME": value}, v).result_code
        for v in (*OLD, "2.23.4", "2.24.3", *NEW)
    ]
    assert codes == [3, 3, 3, 5, 5, 5, 5]


@pytest.mark.parametrize("version", ALL)
def test_the_family_is_one_of_two_exact_words(machine: list[Interface], version: str) -> None:
    assert chosen(machine, version, SOCKET_FAMILY="AF_INET6") == ("eth0", "fe80::1")
    assert chosen(machine, version, SOCKET_FAMILY="AF_INET6", SOCKET_IFNAME="eth1") == ("eth1", "fd00::1")
    assert chosen(machine, version, SOCKET_FAMILY="ipv6") == ETH0


@pytest.mark.parametrize("version", ALL)
def test_ib_comes_first_until_something_is_excluded(machine: list[Interface], version: str) -> None:
    machine = [*machine, interface("ibs1", "10.9.0.1/24", index=7, kind="ipoib")]
    assert chosen(machine, version) == ("ibs1", "10.9.0.1")
    assert chosen(machine, version, SOCKET_IFNAME="^ib,lo") == ETH0


@pytest.mark.parametrize(
    ("version", "unset", "named"), [("2.27.7", ETH0, ETH0), ("2.28.3", ETH1, (None, None))]
)
def test_an_interface_that_does_not_run_is_skipped_from_2_28(
    machine: list[Interface], version: str, unset: tuple[str, str], named: tuple[str | None, str | None]
) -> None:
    flags = tuple(flag for flag in machine[1].flags if flag != "running")
    machine[1] = replace(machine[1], running=False, flags=flags)
    assert chosen(machine, version) == unset
    assert chosen(machine, version, SOCKET_IFNAME="eth0") == named


def test_docker_then_lo_then_virbr_are_the_last_resort(machine: list[Interface], only: Keep) -> None:
    assert chosen(only(machine, "lo", "docker0", "virbr0"), "2.28.9") == ("docker0", "172.17.0.1")
    assert chosen(only(machine, "lo", "docker0", "virbr0"), "2.27.7") == ("virbr0", "192.168.122.1")
    assert chosen(only(machine, "lo", "virbr0"), "2.28.9") == LO
    assert chosen(only(machine, "virbr0"), "2.28.9") == ("virbr0", "192.168.122.1")


def test_the_candidates_are_all_matches_in_the_kernels_order(machine: list[Interface]) -> None:
    assert choose(machine, {"NCCL_SOCKET_IFNAME": "eth1,eth0"}, "2.28.9").candidates == ("eth0", "eth1")


def test_an_alias_label_is_a_name_of_its_own() -> None:
    labelled = replace(
        interface("eth0", "10.0.0.1/24"), addresses=(Address("inet", "10.0.0.1", 24, "eth0:1"),)
    )
    assert chosen([labelled], "2.28.9", SOCKET_IFNAME="=eth0") == (None, None)
    assert chosen([labelled], "2.28.9", SOCKET_IFNAME="eth0") == ETH0


@pytest.mark.parametrize(
    ("value", "expected", "code"),
    [
        ("10.0.1.9:5000", ETH1, 0),
        ("10.0.265:5000", ETH1, 0),  # inet_aton(3): 10.0.1.9
        ("[fd00::9]:5000", ("eth1", "fd00::1"), 0),
        ("[fe80::9%eth1]:5000", ("eth1", "fe80::2"), 0),
        ("[::1]:5000", ("lo", "::1"), 0),
        ("8.8.8.8:53", (None, None), 2),
        ("", (None, None), 4),
        ("x", (None, None), 4),
        (":5000", (None, None), 4),
        ("[fd00::9:5000", (None, None), 4),
    ],
)
def test_comm_id_decides_by_subnet_and_the_name_is_ignored(
    machine: list[Interface], value: str, expected: tuple[str | None, str | None], code: int
) -> None:
    choice = choose(machine, {"NCCL_COMM_ID": value, "NCCL_SOCKET_IFNAME": "eth0"}, "2.28.9")
    assert (choice.interface, choice.address, choice.result_code) == (*expected, code)
    assert not choice.undecided


def test_2_29_takes_the_first_interface_outside_the_subnet_of_comm_id(machine: list[Interface]) -> None:
    assert chosen(machine, "2.29.7", COMM_ID="10.0.1.9:5000") == LO
    assert chosen(machine, "2.29.7", COMM_ID="[fd00::9]:5000") == ("eth1", "fd00::1")
    assert chosen(machine, "2.30.3", COMM_ID="10.0.1.9:5000") == ETH1


def test_a_name_in_comm_id_is_undecided_unless_resolved(machine: list[Interface]) -> None:
    environment = {"NCCL_COMM_ID": "node01:5000"}
    assert choose(machine, environment, "2.28.9").undecided
    assert choose(machine, environment, "2.28.9", resolved={"node01": "10.0.1.7"}).interface == "eth1"


def names(machine: list[Interface], version: str, **environment: str) -> tuple[str, ...]:
    named = {f"NCCL_{name}": value for name, value in environment.items()}
    return network_interfaces(machine, named, version)


@pytest.mark.parametrize("version", ALL)
def test_net_socket_uses_every_match(machine: list[Interface], version: str) -> None:
    assert names(machine, version, SOCKET_IFNAME="eth") == ("eth0", "eth1")
    assert names(machine, version, SOCKET_IFNAME="=eth1") == ("eth1",)
    assert names(machine, version, SOCKET_IFNAME="nosuch") == ()


def test_net_socket_searches_as_bootstrap_does(machine: list[Interface], only: Keep) -> None:
    assert names(machine, "2.27.7") == ("eth0", "eth1", "br-abc", "virbr0")
    assert names(machine, "2.28.9") == ("eth0", "eth1", "br-abc")
    assert names([*machine, interface("ibs1", "10.9.0.1/24", index=7)], "2.28.9") == ("ibs1",)
    assert names(only(machine, "lo"), "2.28.9") == ("lo",)


def test_comm_id_narrows_net_socket_only_where_nothing_else_decides(machine: list[Interface]) -> None:
    assert names(machine, "2.28.9", COMM_ID="10.0.1.9:5000") == ("eth1",)
    assert names(machine, "2.28.9", COMM_ID="10.0.1.9:5000", SOCKET_IFNAME="eth0") == ("eth0",)
    assert names(machine, "2.28.9", COMM_ID="10.77.0.1:5000") == ("eth0", "eth1", "br-abc")
    assert names([*machine, interface("ib0", "10.9.0.1/24", index=7)], "2.28.9", COMM_ID="10.0.1.9:5") == (
        "ib0",
    )


@pytest.mark.parametrize("where", ["running", "flags"])
def test_running_is_told_by_the_field_or_among_the_flags(where: str) -> None:
    told = interface("eth0", "10.0.0.1/24")
    without = tuple(flag for flag in told.flags if flag != "running")
    one = replace(told, flags=without) if where == "running" else replace(told, running=False)
    assert is_running(one)
    assert not is_running(replace(told, flags=without, running=False))
    assert chosen([one], "2.28.9") == ("eth0", "10.0.0.1")
