"""Which connections of the ranks do not get rid of their bytes, and in which direction the packets get lost. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ncclcheck.model.job.watched import BlockedLink, Connection

_MOST_TOLD = 4
_BETWEEN = "packets between them get lost"


def blocked_links(host: str, before: Sequence[Connection], after: Sequence[Connection]) -> list[BlockedLink]:
    """Return the connections on which packets get lost, as this end sees it between two looks; one per rank and peer.

    Either no peer acknowledged bytes that the kernel sent again meanwhile, or still does (to a peer that is only slow
    to read it sends nothing, and what it sent again long ago was acknowledged), or
    packets arrive on a connection that stands still: the peer sends again what this end has acknowledged.
    """
    earlier = {(connection.local, connection.peer): connection for connection in before}
    found: dict[tuple[int | None, str], BlockedLink] = {}
    for now in after:
        then = earlier.get((now.local, now.peer))
        if then is None:
            continue
        heard = None if now.segments_in is None else now.segments_in > (then.segments_in or 0)
        is_sent_again = now.resent > then.resent or now.retries > 0
        stuck = min(now.unacknowledged, then.unacknowledged) > 0 and is_sent_again
        if not stuck and not heard:
            continue
        link = BlockedLink(host, now.peer[0], now.rank, now.unacknowledged if stuck else 0, now.resent, heard)
        known = found.get((now.rank, link.peer))
        if known is None or known.unacknowledged < link.unacknowledged:
            found[now.rank, link.peer] = link
    return list(found.values())


def named(links: Sequence[BlockedLink], host_of: Mapping[str, str]) -> tuple[BlockedLink, ...]:
    """Return the links with their peers' host names, where a node reported its addresses."""
    return tuple(
        BlockedLink(
            link.host,
            host_of.get(link.peer, link.peer),
            link.rank,
            link.unacknowledged,
            link.resent,
            link.heard,
        )
        for link in links
    )


def directions(links: Sequence[BlockedLink], seen: Collection[str] = ()) -> list[str]:
    """Return one sentence for each two hosts with bytes that are not acknowledged, those with a direction first.

    `seen`: the hosts whose connections were looked at; lost packets on their side count, too.
    """
    heard = {(link.host, link.peer) for link in links if link.heard and link.host != link.peer}
    grouped: dict[tuple[str, str], int] = {}
    for link in links:
        if link.unacknowledged:
            pair = link.host, link.peer
            grouped[pair] = grouped.get(pair, 0) + link.unacknowledged
    unknown = {(link.host, link.peer) for link in links if link.heard is None}
    texts: list[tuple[int, str]] = []
    for (host, peer), count in grouped.items():
        rank, lost = _lost(host, peer, heard, seen) if (host, peer) not in unknown else (2, _BETWEEN)
        texts.append((rank, f"{count} bytes from {host} to {peer} are not acknowledged: {lost}"))
    more = (
        [f"{len(texts) - _MOST_TOLD} further pairs of nodes are like it"] if len(texts) > _MOST_TOLD else []
    )
    return [text for _, text in sorted(texts)[:_MOST_TOLD]] + more


def _lost(host: str, peer: str, heard: Collection[tuple[str, str]], seen: Collection[str]) -> tuple[int, str]:
    """Return which packets get lost: what arrives at either end shows the direction."""
    toward = f"packets from {host} to {peer} get lost"
    if (host, peer) in heard:
        return 0, f"{toward}, those from {peer} to {host} arrive"
    if (peer, host) in heard:
        return 0, f"packets from {peer} to {host} get lost, those from {host} to {peer} arrive"
    if any(listener == host and sender not in (host, peer) for listener, sender in heard):
        return 0, f"packets from {host} get lost, while it hears others"
    if peer in seen:
        return 0, f"{toward}"
    return 1, f"nothing arrives from {peer}: packets to it, from it, or both get lost"
