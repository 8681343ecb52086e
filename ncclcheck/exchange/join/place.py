"""The part of a process's place that only arrival gives it: the node rank of a c10d rendezvous, or the local rank."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.base import Store
from ncclcheck.exchange.store.recording import digest_of
from ncclcheck.facts.network.interfaces import addresses_now
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.launch import NOT_RANKED, Launch


def machine_digest() -> str:
    """Return what tells this machine from another one of the same name: a digest of its addresses."""
    return digest_of(" ".join(sorted(addresses_now())).encode())[:16]


def draw_local_rank(store: Store, host: str) -> int | Missing:
    """Return how many processes of this host have drawn before this one."""
    drawn = store.add(keys.local_ranks(host, machine_digest()), 1)
    return drawn if isinstance(drawn, Missing) else drawn - 1


def placed_by_arrival(launch: Launch, host: str, store: Store) -> Fact[Launch]:
    """Return the launch with ranks in order of arrival, where the launcher assigned none.

    Rank 0 drew its local rank before others could. More nodes than the job has clash.
    """
    if launch.told == "rank" and launch.rank:
        local_rank = draw_local_rank(store, host)
        return local_rank if isinstance(local_rank, Missing) else replace(launch, local_rank=local_rank)
    if launch.node_rank != NOT_RANKED:
        return launch
    drawn = store.add(keys.RANKS, 1)
    if isinstance(drawn, Missing):
        return drawn
    rank = min(drawn, launch.nnodes - 1)
    return replace(launch, node_rank=rank, rank=rank)
