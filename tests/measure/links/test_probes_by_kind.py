"""The probes of one kind are the ones of that kind, in their order, whatever holds them."""

from __future__ import annotations

from ncclcheck.measure.links.probes_by_kind import of_kind
from ncclcheck.model.fact import Missing
from tests.probe_builders import timed_probe

PROBES = (
    timed_probe("latency", 0, 1, 25.0),
    timed_probe("bandwidth", 0, 1, 94.0),
    timed_probe("latency", 1, 0, 26.0),
)


def test_they_keep_their_order() -> None:
    assert tuple(of_kind(PROBES, "latency")) == (PROBES[0], PROBES[2])
    assert tuple(of_kind(PROBES, "bandwidth")) == (PROBES[1],)
    assert tuple(of_kind(PROBES, "mtu")) == ()


def test_a_list_that_grows_is_read_again() -> None:
    probes = list(PROBES[:2])
    assert len(of_kind(probes, "latency")) == 1
    probes.append(PROBES[2])
    assert len(of_kind(probes, "latency")) == 2


def test_where_none_were_made_there_is_none() -> None:
    assert tuple(of_kind(Missing("absent", "no probes were made"), "latency")) == ()
