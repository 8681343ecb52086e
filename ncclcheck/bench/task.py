"""The task of one worker process: a single JSON document on its standard input."""

from __future__ import annotations

from msgspec import Struct

from ncclcheck import timeouts
from ncclcheck.model.bench import BenchPlan

NO_TORCH = "torch cannot be imported"  # the start of a worker's error message


class WorkerTask(Struct, frozen=True, forbid_unknown_fields=True):
    """One rank of one benchmark.

    The ranks meet in the store at `store_host:store_port`, which another process serves, under `store_prefix`, which no
    other run may use. Port 0: all ranks are started together by one agent, and rank 0 serves the store to the others.
    `hosts` names the host of every rank. `timeout_s` is only the last resort of the process group: the agent watches
    the worker and ends it long before.
    """

    rank: int
    world_size: int
    local_rank: int
    store_host: str
    store_port: int
    store_prefix: str
    plan: BenchPlan
    hosts: tuple[str, ...]
    join_timeout_s: float = timeouts.GROUP_JOIN_S
    timeout_s: float = timeouts.GROUP_CALL_S
    turns: str | None = None  # the name of its set of ranks, to which turns are given; None: it needs none
    turns_prefix: str = ""  # before the keys of turns in the store
    brief: bool = False  # the plan, and not how fast single ranks and links are
    agent_pid: int | None = None  # filled in by bench.supervise; the worker ends when this process has ended
    progress_fd: int | None = None  # filled in by bench.supervise
    store_fd: int | None = (
        None  # the listening socket on which this rank serves the store; by bench.supervise
    )
