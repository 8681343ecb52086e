"""Each variable between nodes, as if it were compared on every node."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ncclcheck.checks.environment._comparison import compared_by_name
from ncclcheck.checks.majority import compare

_ENVIRONMENT = st.dictionaries(st.sampled_from("ABCD"), st.sampled_from(("1", "2", "")), max_size=4)


@given(st.dictionaries(st.sampled_from([f"node{number}" for number in range(9)]), _ENVIRONMENT))
def test_it_is_what_a_comparison_of_all_nodes_finds(environments: dict[str, dict[str, str]]) -> None:
    names = sorted({name for environment in environments.values() for name in environment})
    plain = {
        name: compare((host, environment.get(name)) for host, environment in environments.items())
        for name in names
    }
    found = list(compared_by_name(environments))
    assert found == [(name, plain[name]) for name in names if plain[name].differs]
