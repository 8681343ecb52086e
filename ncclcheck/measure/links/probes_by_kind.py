"""The probes of a run by kind, sorted once: a run of thousands of nodes has a hundred thousand probes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.formats.same_object import SameObject
from ncclcheck.model.snapshot import Probe, ProbeKind

_RUNS = 4  # a run, and what is made of it when a node fell silent or a benchmark was compared


def of_kind(probes: Fact[Sequence[Probe]], kind: ProbeKind) -> Sequence[Probe]:
    """Return the probes of that kind in their order; none where none were made."""
    if isinstance(probes, Missing):
        return ()
    if not isinstance(probes, tuple):  # a list may change
        return [probe for probe in probes if probe.kind == kind]
    return _by_kind(SameObject(probes)).get(kind, ())


@lru_cache(maxsize=_RUNS)
def _by_kind(probes: SameObject[tuple[Probe, ...]]) -> Mapping[ProbeKind, Sequence[Probe]]:
    found: dict[ProbeKind, list[Probe]] = {}
    for probe in probes.value:
        found.setdefault(probe.kind, []).append(probe)
    return found
