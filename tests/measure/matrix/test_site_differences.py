"""Leaves against the switches of the site, node by node."""

from __future__ import annotations

from ncclcheck.measure.matrix.site_differences import SiteDifference, main_switches, site_differences

SWITCH_OF = {f"n{number}": "s1" if number <= 4 else "s2" for number in range(1, 9)}


def leaves(*groups: str) -> dict[str, list[str]]:
    return {
        f"leaf{place:02}": [f"n{number}" for number in group] for place, group in enumerate(groups, start=1)
    }


def test_equal_leaves_and_leaves_of_several_switches_do_not_differ() -> None:
    assert site_differences(leaves("1234", "5678"), SWITCH_OF) == ()
    assert site_differences(leaves("5678", "4321"), SWITCH_OF) == ()
    assert site_differences(leaves("12345678"), SWITCH_OF) == ()


def test_two_exchanged_nodes_are_both_named() -> None:
    found = site_differences(leaves("1235", "4678"), SWITCH_OF)
    assert found == (
        SiteDifference(("n4",), "s1", "leaf02", "leaf01"),
        SiteDifference(("n5",), "s2", "leaf01", "leaf02"),
    )


def test_a_switch_that_is_spread_evenly_names_all_its_nodes() -> None:
    found = site_differences(leaves("12", "345678"), SWITCH_OF)
    assert [(difference.hosts, difference.home) for difference in found] == [
        (("n1", "n2"), ""),
        (("n3", "n4"), ""),
    ]


def test_hosts_that_the_site_does_not_name_say_nothing() -> None:
    assert site_differences({"leaf01": ["x", "n1"], "leaf02": ["y"]}, SWITCH_OF) == ()
    assert main_switches(leaves("1235", "4678"), SWITCH_OF) == {"leaf01": "s1", "leaf02": "s2"}
    assert main_switches({"leaf01": ["n1", "n5"], "leaf02": []}, SWITCH_OF) == {"leaf01": "", "leaf02": ""}
