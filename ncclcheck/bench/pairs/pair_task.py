"""The task and the answer of the process that measures one pair: one line of JSON each."""

from __future__ import annotations

from msgspec import Struct

from ncclcheck import timeouts
from ncclcheck.measure.isolation.pair_tests import FEW_TRANSFERS
from ncclcheck.model.bench import Backend


class PairTask(Struct, frozen=True, forbid_unknown_fields=True):
    """One rank of a pair, or of a ring of more. They meet in the store under `store_prefix`, which is theirs alone.

    `rail`: the GPU that is used, on NCCL. `most_bytes`: of one transfer. `ring_bytes`: of one transfer of a ring, 0: a
    pair finds it out by itself. `transfers`: of each direction; the mean of the middle half counts. `at_once`: both
    directions at the same time. `round_trips`: so many small messages go there and back before the transfers.
    `barrier_ranks`: the number of ranks, of all pairs, that begin each direction at the same time; 0: no barrier. They
    meet under `round_prefix`.
    """

    number: int  # of the round
    rank: int
    rail: int
    store_host: str
    store_port: int
    store_prefix: str
    backend: Backend
    most_bytes: int
    ranks: int = 2
    ring_bytes: int = 0
    transfers: int = FEW_TRANSFERS
    at_once: bool = False
    round_trips: int = 0
    barrier_ranks: int = 0
    round_prefix: str = ""
    transfer_s: float = timeouts.PAIR_TRANSFER_S
    join_s: float = timeouts.PAIR_JOIN_S


class PairResult(Struct, frozen=True, forbid_unknown_fields=True):
    """What one end measured: the rate at which it received, in 1e9 bit/s; `error`: why there is none.

    `rail`: over which GPU. `transfer_s`: how long one transfer took. `wrong`: elements that were not those sent.
    `deviation`: the standard deviation of one transfer, as a part. `round_trip_us`: the shortest round trip that this
    end began; 0: none.
    """

    number: int
    received_gbit_s: float | None = None
    transfer_s: float = 0.0
    wrong: int = 0
    error: str = ""
    rail: int = 0
    deviation: float = 0.0
    round_trip_us: float = 0.0
