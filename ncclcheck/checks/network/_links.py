"""What the interfaces counted during the run, and which connections failed, so that nothing was measured there."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.network._reach import directions
from ncclcheck.model.fact import NOT_TOLD, Fact, Missing
from ncclcheck.model.finding import Evidence, NotKnown
from ncclcheck.model.hardware import LinkCounters
from ncclcheck.model.snapshot import Snapshot

CARRIER = "carrier_changes"
_LISTED = 6


def counted_growth(link: LinkCounters) -> Fact[dict[str, int]]:
    """Return by how much each counter grew in between; those that did not grow are left out."""
    before, after = link.before, link.after
    if isinstance(before, Missing):
        return before
    if isinstance(after, Missing):
        return after
    grown: dict[str, int] = {}
    for name, count in after.items():
        earlier = before.get(name, 0)
        if isinstance(count, int) and isinstance(earlier, int) and count > earlier:
            grown[name] = count - earlier
    return grown


def growth_text(snapshot: Snapshot, host: str, interface: str) -> tuple[Evidence, ...]:
    """Return what the interface counted during the run, as one piece of evidence; none where that is not known."""
    links = next((links for node, links in snapshot.known("link_counters") if node.host == host), ())
    link = next((link for link in links if link.interface == interface), None)
    grown = NOT_TOLD if link is None else counted_growth(link)
    if isinstance(grown, Missing):
        return ()
    listed = [f"{name} +{count}" for name, count in list(grown.items())[:_LISTED]]
    return (
        Evidence(
            (host,),
            f"counters of {interface} during the run",
            ", ".join(listed) or "no counter of errors or drops grew: the card did not lose them",
            "no growth",
            f"/sys/class/net/{interface}/statistics, ethtool -S {interface}",
        ),
    )


def not_connected(snapshot: Snapshot) -> Iterator[NotKnown]:
    """Yield the pairs of nodes between which nothing was measured, since they do not connect."""
    for probe in directions(snapshot, "tcp"):
        if probe.outcome not in ("ok", "self"):
            yield NotKnown(
                f"nothing was measured to {probe.to_host}, which it does not reach", (probe.from_host,)
            )
