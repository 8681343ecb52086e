"""Single incidents beside the drops: tails with the late rank, links that flap, wrong data, lost ranks."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.measure.soak.counters import CARRIER
from ncclcheck.model.benchmarks.soak import EventKind, SoakBlock, SoakEnd, SoakEvent, TailCause

TAIL = 10  # times the usual median
_MOST = 256  # hosts, or links, whose incidents are kept apart
_WORDS = {
    "late": "came late",
    "stopped": "did not run",
    "core": "waited for a core that other programs used",
    "unknown": "no rank was seen to be late",
}
_UNNAMED = {**_WORDS, "core": "ranks waited for cores that other programs used"}


class _Tails(Struct, frozen=True):
    count: int
    from_s: float
    to_s: float
    worst_us: float
    usual_us: float
    ranks: tuple[int, ...]


class _Flaps(Struct, frozen=True):
    count: int
    from_s: float
    to_s: float


class Incidents:
    """All incidents so far, those of one host together. A class because each block adds to them."""

    def __init__(self) -> None:
        self._tails: dict[tuple[str, TailCause], _Tails] = {}
        self._flaps: dict[tuple[str, str], _Flaps] = {}
        self._wrong: tuple[SoakEvent, ...] = ()

    @property
    def count(self) -> int:
        """Return how many there are."""
        return sum(tails.count for tails in self._tails.values()) + len(self._flaps) + len(self._wrong)

    def add(self, block: SoakBlock, at_s: float, hosts: Sequence[str]) -> None:
        """Add the flaps and the wrong data of a block."""
        end_s = round(at_s + block.seconds, 2)
        for node in block.nodes:
            for name, count in node.counts.items():
                if not name.endswith(CARRIER) or not count:
                    continue
                key = node.host, name.split()[0]
                known = self._flaps.get(key, _Flaps(0, at_s, end_s))
                if key in self._flaps or len(self._flaps) < _MOST:
                    self._flaps[key] = replace(known, count=known.count + count, to_s=end_s)
        if block.wrong and not self._wrong:
            whose = tuple(dict.fromkeys(hosts[rank] for rank in block.wrong_ranks if rank < len(hosts)))
            text = f"{block.op} gave {block.wrong} wrong elements in block {block.number}"
            self._wrong = (_event("wrong", at_s, end_s, whose, text),)

    def add_tails(self, block: SoakBlock, at_s: float, usual_us: float, hosts: Sequence[str]) -> None:
        """Add the iterations that took far longer than usual."""
        for tail in block.tails:
            if tail.time_us <= TAIL * usual_us:
                continue
            is_known = tail.rank is not None and tail.rank < len(hosts)
            key = (
                (hosts[tail.rank], tail.how)
                if is_known and tail.rank is not None
                else ("", "core" if tail.how == "core" else "unknown")
            )
            known = self._tails.get(key) or _Tails(0, at_s, at_s, 0.0, usual_us, ())
            if key in self._tails or len(self._tails) < _MOST:
                ranks = {*known.ranks, *([tail.rank] if tail.rank is not None else [])}
                self._tails[key] = _Tails(
                    known.count + 1,
                    known.from_s,
                    round(at_s + block.seconds, 2),
                    max(known.worst_us, tail.time_us),
                    usual_us,
                    tuple(sorted(ranks)),
                )

    def events(self) -> list[SoakEvent]:
        """Return one event for each host that made tails, for each link that flapped, and for wrong data."""
        tails = [_tail_event(*key, tails) for key, tails in self._tails.items()]
        return [*tails, *(_flap_event(*key, flaps) for key, flaps in self._flaps.items()), *self._wrong]

    @staticmethod
    def lost(end: SoakEnd, at_s: float) -> list[SoakEvent]:
        """Return the events of the ranks that ended the soak."""
        return [
            _event(
                lost.kind,
                at_s,
                None,
                (lost.host,),
                f"rank {lost.rank} on {lost.host}: {lost.detail}",
            )
            for lost in end.lost
        ]


def _tail_event(host: str, how: TailCause, tails: _Tails) -> SoakEvent:
    whose = (
        f"rank{'s' if tails.ranks[1:] else ''} {', '.join(map(str, tails.ranks))} on {host} {_WORDS[how]}"
        if host
        else _UNNAMED[how]
    )
    several = "iterations" if tails.count > 1 else "iteration"
    return _event(
        "tail",
        tails.from_s,
        tails.to_s,
        (host,) if host else (),
        f"{tails.count} {several} of more than {TAIL} times the usual {tails.usual_us / 1e3:.3g} ms, "
        f"{tails.worst_us / 1e3:.3g} ms at most: {whose}",
    )


def _flap_event(host: str, interface: str, flaps: _Flaps) -> SoakEvent:
    text = f"the carrier of {interface} on {host} changed {flaps.count} times"
    return _event("flap", flaps.from_s, flaps.to_s, (host,), text)


def _event(
    kind: EventKind, from_s: float, to_s: float | None, hosts: tuple[str, ...], summary: str
) -> SoakEvent:
    """Return an event that has neither direction nor size."""
    return SoakEvent(
        kind=kind, from_s=from_s, to_s=to_s, hosts=hosts, direction=None, size_percent=None, summary=summary
    )
