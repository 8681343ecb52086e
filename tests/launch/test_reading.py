"""Numbers and node lists in launchers' notation."""

from __future__ import annotations

import pytest

from ncclcheck.launch.reading import MOST_NAMES, names_in, node_names, number, port, tasks_on_node
from ncclcheck.model.errors import UsageError


def test_the_first_name_that_is_set_counts() -> None:
    assert number({"B": "2", "C": "3"}, "A", "B", "C") == 2
    assert number({}, "A") is None


@pytest.mark.parametrize("text", ["-1", "1.5", "²", "0x1", "one"])
def test_what_is_no_count_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="whole number"):
        number({"RANK": text}, "RANK")


def test_port_has_a_default_and_a_range() -> None:
    assert port({}, 29500) == 29500
    with pytest.raises(UsageError, match=r"1\.\.65535"):
        port({"MASTER_PORT": "0"}, 29500)


def test_tasks_per_node() -> None:
    assert [tasks_on_node("2(x2),1", node) for node in range(4)] == [2, 2, 1, None]
    assert tasks_on_node("two", 0) is None


def test_node_lists() -> None:
    assert node_names("node[1-3]") == ("node1", "node2", "node3")
    assert node_names("node[3,09-10],a,rack[2,1]n[1-2]") == (
        "node3", "node09", "node10", "a", "rack2n1", "rack2n2", "rack1n1", "rack1n2",
    )  # fmt: skip
    assert node_names("node[1-") == ()
    assert node_names("node" + "9" * 5000) == ()
    assert node_names("") == ()


@pytest.mark.parametrize("text", ["node[1-99999999999]", "node[1-9999999]", "r[1-999]n[1-999]x[1-9]"])
def test_a_list_that_nobody_has_is_not_expanded(text: str) -> None:
    assert node_names(text) == ()
    assert names_in(text) > MOST_NAMES


def test_names_are_counted_without_naming_them() -> None:
    assert names_in("a,node[1-16],r[1-2]n[1,3-5/2]") == 1 + 16 + 2 * 3
