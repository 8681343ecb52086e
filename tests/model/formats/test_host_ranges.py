"""Folding as ClusterShell does it."""

from __future__ import annotations

import pytest
from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet
from hypothesis import given
from hypothesis import strategies as st

from ncclcheck.model.formats.host_ranges import fold_numbered


@given(
    st.sets(st.integers(0, 120), min_size=1),
    st.sampled_from(("node", "gpu-", "a.b", "")),
    st.sampled_from(("", "-ib", ".site")),
    st.integers(1, 5),
)
def test_it_folds_as_clustershell_does(numbers: set[int], before: str, after: str, width: int) -> None:
    names = [f"{before}{number:0{width}}{after}" for number in numbers]
    folded = fold_numbered(names)
    if len({len(name) for name in names}) > 1 or not before:
        return
    assert folded == str(NodeSet.fromlist(names, resolver=RESOLVER_NOGROUP))


@pytest.mark.parametrize(
    "names",
    [
        ("node1", "node10"),  # widths differ
        ("node1", "rack1"),
        ("node1-2",),
        ("node",),
        ("node\u0661",),
        ("node[1]",),
        (),
    ],
)
def test_other_names_are_left_to_clustershell(names: tuple[str, ...]) -> None:
    assert fold_numbered(names) is None
