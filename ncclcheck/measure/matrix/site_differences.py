"""Where the leaves that were measured and the switches that a site names differ, node by node."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from msgspec import Struct


class SiteDifference(Struct, frozen=True):
    """Hosts that the site has behind `switch`, and that were measured in `leaf`.

    `home`: the leaf of most hosts of this switch; "" where no leaf has more of them than each other one.
    """

    hosts: tuple[str, ...]
    switch: str
    leaf: str
    home: str


def site_differences(
    leaves: Mapping[str, Sequence[str]], switch_of: Mapping[str, str]
) -> tuple[SiteDifference, ...]:
    """Return where they differ; `switch_of`: the switch of each host that the site names.

    A leaf may hold several switches: a trunk that nobody feels does not show. But the hosts of one switch have to be in
    one leaf. Where they are not, those outside the leaf of most of them differ; without such a leaf all of them do.
    """
    found: defaultdict[str, dict[str, list[str]]] = defaultdict(dict)
    for leaf, hosts in leaves.items():
        for host in hosts:
            if host in switch_of:
                found[switch_of[host]].setdefault(leaf, []).append(host)
    differences = []
    for switch, by_leaf in found.items():
        home = _most(Counter({leaf: len(hosts) for leaf, hosts in by_leaf.items()}))
        differences += [
            SiteDifference(tuple(hosts), switch, leaf, home)
            for leaf, hosts in by_leaf.items()
            if leaf != home
        ]
    return tuple(differences)


def main_switches(leaves: Mapping[str, Sequence[str]], switch_of: Mapping[str, str]) -> dict[str, str]:
    """Return the switch that most hosts of each leaf are behind, as the site has it; "" where none has most."""
    return {
        leaf: _most(Counter(switch_of[host] for host in hosts if host in switch_of))
        for leaf, hosts in leaves.items()
    }


def _most(counts: Counter[str]) -> str:
    """Return what is counted more often than everything else; "" where nothing is."""
    ranked = counts.most_common(2)
    is_tie = len(ranked) > 1 and ranked[0][1] == ranked[1][1]
    return ranked[0][0] if ranked and not is_tie else ""
