"""What the process that measures one pair is told, and what it answers: one line of JSON each."""

from __future__ import annotations

from msgspec import Struct

from ncclcheck import timeouts
from ncclcheck.model.bench import Backend


class PairTask(Struct, frozen=True, forbid_unknown_fields=True):
    """One of the two ranks of a pair. They meet in the store under `store_prefix`, which no other pair may use.

    `local_rank`: the GPU that is used, on NCCL. `most_bytes`: of one transfer.
    """

    number: int  # of the round
    rank: int  # 0 or 1
    local_rank: int
    store_host: str
    store_port: int
    store_prefix: str
    backend: Backend
    most_bytes: int
    transfer_s: float = timeouts.PAIR_TRANSFER_S
    join_s: float = timeouts.PAIR_JOIN_S


class PairResult(Struct, frozen=True, forbid_unknown_fields=True):
    """What one end measured: the rate at which it received, in 1e9 bit/s; `error`: why there is none.

    `transfer_s`: how long one transfer took. `wrong`: elements that were not those that were sent.
    """

    number: int
    received_gbit_s: float | None = None
    transfer_s: float = 0.0
    wrong: int = 0
    error: str = ""
