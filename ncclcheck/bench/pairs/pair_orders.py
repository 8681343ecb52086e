"""Node 0's orders to measure pairs, and the answers: what both sides of `isolate` share."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Mapping

from msgspec import Struct

from ncclcheck.exchange.order_limits import environment_faults
from ncclcheck.measure.isolation.pair_tests import FEW_TRANSFERS
from ncclcheck.model.bench import Backend
from ncclcheck.model.bench_setup import BenchNetwork
from ncclcheck.model.benchmarks.isolation import PairOutcome
from ncclcheck.timeouts import LONGEST_OPTION_S

ROUND_LIMIT_BYTES = 1 << 20  # 16,384 nodes take a quarter of it
MOST_BYTES = 1 << 32
MOST_RAILS = 64
LOWEST_RATE, HIGHEST_RATE = 1e-9, 1e6  # in 1e9 bit/s: one bit in a second, and a thousand times the fastest
MOST_DEVIATION = 100.0  # of a logarithm: times from 1e-12 s to a week differ by 41
_NONCE = re.compile(r"[0-9a-f]{16}", re.ASCII)


class PairsOrder(Struct, frozen=True, forbid_unknown_fields=True, tag="pairs"):
    """Start what measures pairs, and follow the rounds until one is empty. In an environment None unsets a variable.

    `rails`: so many GPUs of a node measure at the same time, each with the same GPU of the partner.
    """

    backend: Backend
    most_bytes: int
    nonce: str
    environments: dict[str, dict[str, str | None]]  # by ticket
    rails: int = 1


def pairs_order(
    network: BenchNetwork, most_bytes: int, host_of: Mapping[int, str], *, one_process: bool
) -> PairsOrder:
    """Return the order for these hosts, by ticket; of several processes on a node each may see its own GPU only."""
    environments = {str(ticket): network.environment_of.get(host, {}) for ticket, host in host_of.items()}
    rails = min(network.ranks_of.values()) if network.backend == "nccl" and one_process else 1
    return PairsOrder(network.backend, most_bytes, secrets.token_hex(8), environments, rails)


class PairsRound(Struct, frozen=True, forbid_unknown_fields=True):
    """A round: pairs of tickets, each as (first, second), or one ring of more. Neither: it is over.

    Round 0 only asks who is ready. `ring_bytes`: of one transfer of a ring. `transfers`: of each direction of a pair;
    `at_once`: both at the same time. `round_trips`: so many small messages go there and back before them. `rail_shift`:
    GPU i of the first node meets GPU i + rail_shift of the second. `together`: all pairs begin at the same time.
    """

    schema_version: str
    tool_version: str
    number: int
    pairs: tuple[tuple[int, int], ...] = ()
    ring: tuple[int, ...] = ()
    ring_bytes: int = 0
    transfers: int = FEW_TRANSFERS
    at_once: bool = False
    round_trips: int = 0
    rail_shift: int = 0
    together: bool = False

    def group_of(self, ticket: int) -> tuple[int, ...] | None:
        """Return the pair or ring that a node belongs to."""
        return next((group for group in (*self.pairs, self.ring) if ticket in group), None)


class PairAnswer(Struct, frozen=True, forbid_unknown_fields=True):
    """What one end of a pair says: at what rate it received, in 1e9 bit/s, or what became of it.

    `own`: the fault is this node's own, as where its process was stopped. `seconds`: how long its pair took, with its
    start; `transfer_s`: one of its transfers. `rails_gbit_s`: what each GPU received, where there are several.
    `deviation`: the standard deviation of one transfer, as a part. `round_trip_us`: the shortest round trip.
    """

    schema_version: str
    tool_version: str
    outcome: PairOutcome = "ok"
    received_gbit_s: float | None = None
    detail: str = ""
    own: bool = False
    seconds: float = 0.0
    transfer_s: float = 0.0
    rails_gbit_s: tuple[float, ...] = ()
    deviation: float = 0.0
    round_trip_us: float = 0.0


def pairs_faults(order: PairsOrder, ticket: int) -> Iterator[str]:
    """Yield why the node of that ticket does not follow the order."""
    environment = order.environments.get(str(ticket))
    if environment is not None:
        yield from environment_faults([environment])
    if not 0 < order.most_bytes <= MOST_BYTES:
        yield "a size out of bounds"
    if not 0 < order.rails <= MOST_RAILS:
        yield "a number of rails out of bounds"
    if _NONCE.fullmatch(order.nonce) is None:
        yield "a nonce that is none"


def answer_faults(answer: PairAnswer) -> Iterator[str]:
    """Yield why the figures of an answer are none that a node can measure."""
    received = () if answer.received_gbit_s is None else (answer.received_gbit_s,)
    if not all(LOWEST_RATE <= rate <= HIGHEST_RATE for rate in (*received, *answer.rails_gbit_s)):
        yield "a rate out of bounds"
    if len(answer.rails_gbit_s) > MOST_RAILS:
        yield "rails out of bounds"
    if not all(0 <= took_s <= LONGEST_OPTION_S for took_s in (answer.seconds, answer.transfer_s)):
        yield "a time out of bounds"
    if not 0 <= answer.round_trip_us <= LONGEST_OPTION_S * 1e6:
        yield "a round trip out of bounds"
    if not 0 <= answer.deviation <= MOST_DEVIATION:
        yield "a deviation out of bounds"
