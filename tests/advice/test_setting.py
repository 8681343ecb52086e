"""The smallest change of the environment; `test_interface.py` has what becomes of it in the advice."""

from __future__ import annotations

from ncclcheck.advice.networks import Network, Rank, find_networks
from ncclcheck.advice.reach import Reach, read_reach
from ncclcheck.advice.setting import choices_under, smallest_change
from ncclcheck.model.fact import Missing
from ncclcheck.model.snapshot import Snapshot
from tests.advice.clusters import of_nodes, two_interfaces, two_networks, unasked, with_probes
from tests.builders import with_facts
from tests.fact_builders import interface, some

IFNAME = "NCCL_SOCKET_IFNAME"


def parts(snapshot: Snapshot) -> tuple[Reach, list[Network]]:
    reach = some(read_reach(snapshot))
    return reach, [network for network in find_networks(snapshot, reach) if network.failure is None]


def change(snapshot: Snapshot) -> dict[str, dict[str, str | None]]:
    found = smallest_change(snapshot, *parts(snapshot))
    assert found is not None
    changes, places = found
    assert choices_under(snapshot, changes) == places
    assert parts(snapshot)[0].failure(places) is None
    return changes


def on_both(**values: str | None) -> dict[str, dict[str, str | None]]:
    return {host: dict(values) for host in ("node01", "node02")}


def test_unsetting_one_variable_comes_before_unsetting_two() -> None:
    snapshot = two_networks(2, NCCL_SOCKET_IFNAME="lo", NCCL_SOCKET_FAMILY="AF_INET")
    assert change(snapshot) == on_both(NCCL_SOCKET_IFNAME=None)


def test_two_are_unset_where_each_of_them_alone_is_wrong() -> None:
    snapshot = two_networks(2, NCCL_SOCKET_IFNAME="lo", NCCL_SOCKET_FAMILY="AF_INET6")
    assert change(snapshot) == on_both(NCCL_SOCKET_IFNAME=None, NCCL_SOCKET_FAMILY=None)


def test_a_name_is_given_only_where_unsetting_does_not_do() -> None:
    snapshot = with_probes(two_networks(2, NCCL_SOCKET_IFNAME="lo"), "filtered", interface="eth0")
    assert change(snapshot) == on_both(NCCL_SOCKET_IFNAME="eth1")


def test_a_name_that_is_given_goes_with_what_overrides_it() -> None:
    snapshot = two_networks(2, NCCL_COMM_ID="127.0.0.1:5000")
    snapshot = with_probes(snapshot, "filtered", interface="eth0")
    assert change(snapshot) == on_both(NCCL_COMM_ID=None, NCCL_SOCKET_IFNAME="eth1")


def test_a_variable_of_one_node_is_unset_on_all() -> None:
    snapshot = of_nodes(two_interfaces(1), two_interfaces(2, NCCL_SOCKET_IFNAME="lo"))
    assert change(snapshot) == on_both(NCCL_SOCKET_IFNAME=None)


def test_no_names_are_given_where_the_default_of_each_node_is_right_under_another_name() -> None:
    first = unasked(interface("eth0", "10.0.0.1/24"), interface("eth1", "10.9.0.1/24", index=3))
    second = unasked(interface("eth1", "10.0.0.2/24"), interface("eth0", "10.9.0.2/24", index=3))
    snapshot = of_nodes(first, second)
    for address in ("10.9.0.1", "10.9.0.2"):
        snapshot = with_probes(snapshot, "filtered", address=address)
    for host, own in (("node01", "eth1"), ("node02", "eth0")):
        snapshot = with_facts(snapshot, host, environment={IFNAME: own})
    assert change(snapshot) == on_both(NCCL_SOCKET_IFNAME=None)


def test_what_no_name_leads_to_is_passed_over_and_nothing_idle_is_set_for_the_next() -> None:
    """`eth0,b` cannot be named, so eth0 is what is left, and that is the default once the family is gone."""
    nodes = [
        unasked(
            interface("eth0", f"10.0.0.{n}/24", f"fe80::{n}/64"),
            interface("eth0,b", f"10.0.1.{n}/24", index=3),
            NCCL_SOCKET_FAMILY="AF_INET6",
        )
        for n in (1, 2)
    ]
    snapshot = of_nodes(*nodes)
    reach, networks = parts(snapshot)
    wanted = sorted(networks, key=lambda network: network.name)
    assert [one.name for one in wanted] == ["eth0", "eth0,b"]
    first = Network(wanted[1].places, Rank(False, -400_000), None)
    assert smallest_change(snapshot, reach, [first, wanted[0]]) == (
        on_both(NCCL_SOCKET_FAMILY=None),
        wanted[0].places,
    )


def test_no_change_is_named_where_no_variable_reaches_the_network() -> None:
    snapshot = two_networks(2)
    reach, _ = parts(snapshot)
    places = {"node01": ("eth7", "10.7.0.1"), "node02": ("eth7", "10.7.0.2")}
    nowhere = Network(places, Rank(False, -400_000), None)
    assert smallest_change(snapshot, reach, [nowhere]) is None


def test_what_is_not_known_of_one_node_makes_the_choice_of_all_unknown() -> None:
    snapshot = two_networks(2)
    assert choices_under(snapshot, {}) == {"node01": ("eth0", "10.0.0.1"), "node02": ("eth0", "10.0.0.2")}
    assert choices_under(snapshot, {"node02": {IFNAME: "nothing"}}) is None
    unread = with_facts(snapshot, "node02", interfaces=Missing("timeout", "no answer"))
    assert choices_under(unread, {}) is None
