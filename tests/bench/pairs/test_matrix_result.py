"""From the rounds of matrix to the result, in the order of the hosts' names."""

from __future__ import annotations

from itertools import combinations

from ncclcheck.bench.pairs.matrix_result import fabric_matrix, plan_for, with_rounds
from ncclcheck.bench.pairs.pair_rounds import Lost, Rounds
from ncclcheck.measure.isolation.pair_tests import PairTest
from ncclcheck.measure.matrix.matrix_plan import MatrixPlan
from ncclcheck.model.benchmarks.isolation import IsolateRequest
from ncclcheck.model.benchmarks.matrix import FabricMatrix
from ncclcheck.model.fact import Missing
from tests.builders import cluster

HOST_OF = {0: "node10", 1: "node2", 2: "node1", 3: "node20", 4: "node3"}


def plan() -> MatrixPlan:
    found = plan_for(IsolateRequest(matrix="auto"), HOST_OF)
    assert isinstance(found, MatrixPlan)
    return found


def test_hosts_are_ordered_by_their_numbers_and_isolate_keeps_its_plan() -> None:
    assert [HOST_OF[ticket] for ticket in plan().order] == ["node1", "node2", "node3", "node10", "node20"]
    assert not isinstance(plan_for(IsolateRequest(), HOST_OF), MatrixPlan)


def test_cells_leaves_and_lost_nodes_have_names() -> None:
    tests = tuple(PairTest(1, *pair, 10.0, 9.9) for pair in combinations(range(4), 2))
    hung = (*tests, PairTest(2, 0, 4, outcome="hang"))
    rounds = Rounds(hung, (Lost(4, "hang", 2, "no answer"),), is_finished=True)
    snapshot = with_rounds(cluster(4), HOST_OF, plan(), rounds)
    found = snapshot.matrix
    assert isinstance(found, FabricMatrix)
    assert found.leaves == (("node1", "node2", "node10", "node20"),)
    assert [(node.host, node.outcome) for node in found.nodes] == [("node3", "hang")]
    cells = {(cell.from_host, cell.to_host): cell.gbit_s for cell in found.cells}
    assert cells["node10", "node2"] == 10.0
    assert cells["node2", "node10"] == 9.9
    assert cells["node10", "node3"] is None


def test_without_a_test_that_finished_nothing_is_known() -> None:
    assert isinstance(fabric_matrix(HOST_OF, plan(), Rounds((), (), is_finished=False)), Missing)


def test_lost_nodes_are_named_though_nobody_else_finished_a_test() -> None:
    lost = (Lost(4, "hang", 0, "no answer"), Lost(1, "died", 1, "No module named torch"))
    hung = (PairTest(1, 0, 1, outcome="died"),)
    found = fabric_matrix(HOST_OF, plan(), Rounds(hung, lost, is_finished=True))
    assert isinstance(found, FabricMatrix)
    assert [(node.host, node.outcome) for node in found.nodes] == [("node2", "died"), ("node3", "hang")]
    assert found.leaves == ()
    assert found.apart == ("node1", "node10", "node20")
    assert [cell.gbit_s for cell in found.cells] == [None, None]
    only = fabric_matrix(HOST_OF, plan(), Rounds((), lost, is_finished=True))
    assert isinstance(only, FabricMatrix)
    assert len(only.nodes) == 2


def test_a_path_whose_repeats_were_not_made_is_open_by_its_hosts() -> None:
    slow = {(0, 1)}
    tests = tuple(
        PairTest(1, *pair, 5.0 if pair in slow else 10.0, 10.0) for pair in combinations(range(5), 2)
    )
    matrix_plan = plan()
    matrix_plan.kinds[1] = "all"
    found = fabric_matrix(HOST_OF, matrix_plan, Rounds(tests, (), is_finished=False))
    assert isinstance(found, FabricMatrix)
    assert [(path.from_host, path.to_host, path.slow, path.tests) for path in found.open_paths] == [
        ("node10", "node2", 1, 1)
    ]


def test_three_nodes_are_not_called_flat() -> None:
    hosts = {ticket: HOST_OF[ticket] for ticket in range(3)}
    few = plan_for(IsolateRequest(matrix="auto"), hosts)
    assert isinstance(few, MatrixPlan)
    tests = tuple(PairTest(1, *pair, 10.0, 9.9) for pair in combinations(range(3), 2))
    found = fabric_matrix(hosts, few, Rounds(tests, (), is_finished=True))
    assert isinstance(found, FabricMatrix)
    assert not found.flat
    assert found.leaves == (("node1", "node2", "node10"),)


def test_rounds_that_were_interrupted_do_not_call_the_network_flat() -> None:
    tests = tuple(PairTest(1, *pair, 10.0, 9.9) for pair in combinations(range(5), 2))
    for is_finished in (True, False):
        found = fabric_matrix(HOST_OF, plan(), Rounds(tests, (), is_finished=is_finished))
        assert isinstance(found, FabricMatrix)
        assert found.flat is is_finished
