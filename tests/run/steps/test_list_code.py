"""Node 0 asks for lists of files only where code differs; a node lists only what its own command line names."""

from __future__ import annotations

import threading

from ncclcheck.exchange.deadline import Deadline
from ncclcheck.exchange.messages import SCHEMA
from ncclcheck.exchange.roster import Member
from ncclcheck.exchange.store.base import Store
from ncclcheck.model.codec import encode
from ncclcheck.run.steps.list_code import LIST_CODE, CodeListed
from tests.bench.nodes.benches import session
from tests.builders import cluster
from tests.fact_builders import host_of, launch
from tests.measure.test_file_lists import with_tree

AGENTS = tuple(Member(rank + 1, launch(rank, 3), host_of(rank)) for rank in range(3))


def test_it_applies_only_where_code_differs(store: Store) -> None:
    assert not LIST_CODE.applies(session(store, cluster(3), 20.0, AGENTS))


def test_the_lists_of_two_nodes_become_a_difference(store: Store) -> None:
    snapshot = with_tree(cluster(3), "node03", "c" * 64)

    def answer() -> None:
        store.wait_document("step/0", Deadline(20))
        for ticket, digest in ((1, "x"), (3, "y")):
            listed = CodeListed(SCHEMA, "0", {"/work/train": {"a.py": digest}})
            store.set_document(f"answer/0/{ticket}", encode(listed))

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    (found,) = LIST_CODE.lead(session(store, snapshot, 30.0, AGENTS)).code_differences
    assert (found.host, found.compared_with, found.changed.first) == ("node03", "node01", ("a.py",))
    thread.join(20)
