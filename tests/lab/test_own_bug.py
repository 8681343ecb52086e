"""A bug of ncclcheck's on node 0 of real nodes: it ends as one there, and nobody blames the network."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.lab.launched import run
from tests.lab.nodes import REPOSITORY, Lab

pytestmark = [pytest.mark.lab, pytest.mark.slow]
LabOf = Callable[..., Lab]

# Python runs a file of this name when it starts. Clients work, so only node 0 fails.
BROKEN_SERVER = """
import ncclcheck.exchange.store.torch_versions as versions

make_store = versions.make_store


def broken(tcp_store, host, port, **options):
    if options["is_master"]:
        raise NotImplementedError("this torch cannot serve here")
    return make_store(tcp_store, host, port, **options)


versions.make_store = broken
"""


def test_a_bug_in_serving_ends_node_0_with_70_and_the_others_do_not_blame_the_network(lab: LabOf) -> None:
    two = lab(2)
    first = two["node1"].folder / "home"
    (first / "sitecustomize.py").write_text(BROKEN_SERVER)
    outcomes = run(two, "preflight", env_by_node={two["node1"]: {"PYTHONPATH": f"{first}:{REPOSITORY}"}})
    failed, told = outcomes["node1"], outcomes["node2"]
    assert failed.code == 70, str(failed.finished)
    assert (
        "NotImplementedError: this torch cannot serve here" in failed.finished.stdout + failed.finished.stderr
    )
    assert told.code == 3, str(told.finished)
    assert told.slugs == {"node-silent"}
    (evidence,) = told.finding("node-silent")["evidence"]
    assert "ncclcheck failed there: NotImplementedError: this torch cannot serve here" in evidence["observed"]
    assert max(outcome.finished.seconds for outcome in outcomes.values()) < 45
    assert two.leftovers() == ()
