"""When which node sends to which: rounds in which every node sends to one other and receives from one other.

In the round of shift s, node i of n sends to node (i + s) mod n. So no interface has two transfers in one direction,
each node takes part in as many as there are rounds, as sender and as receiver, with different partners: so a slow end
can be identified. All networks are measured one after the other, since two of them may share one wire (VLANs, bridges).
"""

from __future__ import annotations

from msgspec import Struct

from ncclcheck import timeouts

STREAMS = 4
ROUND_TRIPS = 30

_PARTNERS, _FEWEST_PARTNERS = 3, 2


class RoundPlan(Struct, frozen=True, forbid_unknown_fields=True):
    """The rounds of one network, and how many networks are measured: the first ones of those that were given."""

    shifts: tuple[int, ...]
    networks: int
    warm_up_s: float
    window_s: float
    pings_s: float  # the time one pair may take for its round trips

    @property
    def round_s(self) -> float:
        """What one round takes where both ends are there."""
        return timeouts.LINKS_START_S + self.warm_up_s + self.window_s

    @property
    def rounds(self) -> int:
        """The rounds of all networks."""
        return self.networks * len(self.shifts)

    @property
    def latency_s(self) -> float:
        """The longest that all round trips take, with a partner that never answers."""
        return timeouts.LINKS_PARTNER_S + self.rounds * self.pings_s

    @property
    def bandwidth_s(self) -> float:
        """The longest that all transfers take, with partners that never answer."""
        return self.latest_start_s(self.rounds)

    def latest_start_s(self, number: int) -> float:
        """Return how long after the first round could begin this one has to begin; later, it does not take place.

        Who waits for a partner that is gone loses time once: a round starts at the latest when it would have, had the
        first ones used up all the patience there is. Those who lost it are still waited for by their next partners.
        """
        return (
            timeouts.LINKS_PARTNER_S
            + min(number, len(self.shifts) - 1) * timeouts.LINKS_TOLERANCE_S
            + number * self.round_s
        )


def plan_rounds(nodes: int, networks: int) -> RoundPlan:
    """Return the rounds for so many nodes and networks: at most 10 s however many there are.

    Three partners of each node where the time allows, else two; then shorter rounds; and what does not fit into the
    shortest is not measured.
    """
    shifts = _shifts(nodes, _PARTNERS)
    if (
        networks * len(shifts) * (timeouts.LINKS_START_S + timeouts.LINKS_WARM_UP_S + timeouts.LINKS_WINDOW_S)
        > timeouts.LINKS_TRANSFERS_S
    ):
        shifts = _shifts(nodes, _FEWEST_PARTNERS)
    shortest_s = timeouts.LINKS_START_S + timeouts.LINKS_LEAST_WARM_UP_S + timeouts.LINKS_LEAST_WINDOW_S
    measured = min(networks, int(timeouts.LINKS_TRANSFERS_S / (len(shifts) * shortest_s)))
    rounds = max(measured * len(shifts), 1)
    spare_s = min(
        timeouts.LINKS_TRANSFERS_S / rounds - timeouts.LINKS_START_S,
        timeouts.LINKS_WARM_UP_S + timeouts.LINKS_WINDOW_S,
    )
    window_s = max(
        spare_s * timeouts.LINKS_WINDOW_S / (timeouts.LINKS_WARM_UP_S + timeouts.LINKS_WINDOW_S),
        timeouts.LINKS_LEAST_WINDOW_S,
    )
    return RoundPlan(
        shifts=shifts,
        networks=measured,
        warm_up_s=max(spare_s - window_s, timeouts.LINKS_LEAST_WARM_UP_S),
        window_s=window_s,
        pings_s=min(timeouts.LINKS_PINGS_OF_A_PAIR_S, timeouts.LINKS_PINGS_S / rounds),
    )


def _shifts(nodes: int, partners: int) -> tuple[int, ...]:
    """Return neighbours, and one from the other half of the ring: where a cluster spans racks, in another rack.

    Two nodes have one partner each, and measure twice.
    """
    if nodes <= _FEWEST_PARTNERS:
        return (1,) * _FEWEST_PARTNERS
    apart = dict.fromkeys(shift for shift in (1, nodes // 2, 2, 3) if shift < nodes)
    return tuple(sorted(list(apart)[:partners]))
