"""Many hosts as few words: `node[01-03,07]`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

from ncclcheck.model.formats.host_ranges import fold_numbered
from ncclcheck.report.text.plain import plain

# What ClusterShell folds and unfolds without giving a character a meaning of its own (groups @, wildcards *, sets !&^).
_FOLDABLE = re.compile(r"[A-Za-z0-9_.-]{1,253}")


def fold_hosts(hosts: Iterable[str]) -> str:
    """Fold the hosts as ClusterShell does, each once; a name that it cannot parse stands as it is, made harmless."""
    names = sorted(set(hosts))
    numbered = fold_numbered(names)
    if numbered is not None:
        return numbered
    # ClusterShell takes a tenth of a second to import, which --help and checks need not pay.
    from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

    folded = NodeSet(resolver=RESOLVER_NOGROUP)
    odd = []
    for name in names:
        if _FOLDABLE.fullmatch(name) is None:
            odd.append(plain(name) or "(no name)")
            continue
        try:
            folded.add(name)
        except (NodeSetException, ValueError, OverflowError):
            odd.append(name)
    text = str(folded)
    return ",".join([text, *odd] if text else odd)


def fold_numbers(numbers: Sequence[int], limit: int = 8) -> str:
    """Return numbers as ranges: `0-3`, and with equal steps `0,8,...,56`; of others the first few."""
    steps = {after - before for before, after in pairwise(numbers)}
    if len(steps) == 1 and len(numbers) > 2:  # noqa: PLR2004 (two are no range)
        return f"{numbers[0]}-{numbers[-1]}" if steps == {1} else _stepped(numbers)
    more = f" and {len(numbers) - limit} more" if len(numbers) > limit else ""
    return ",".join(map(str, numbers[:limit])) + more


def _stepped(numbers: Sequence[int]) -> str:
    few = len(numbers) <= 4  # noqa: PLR2004 (shorter than with dots)
    return ",".join(map(str, numbers)) if few else f"{numbers[0]},{numbers[1]},...,{numbers[-1]}"
