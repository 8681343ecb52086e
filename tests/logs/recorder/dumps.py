"""Flight recorder dumps as torch writes them, made of a few words: for tests."""

from __future__ import annotations

import json
import pickle  # noqa: TID251 (only to write what the reader must take, or refuse)
from collections.abc import Iterable, Sequence

NS = 1_000_000_000


def entry(
    sequence: int,
    name: str = "nccl:all_reduce",
    elements: int | Sequence[int] = 8,
    *,
    state: str = "completed",
    group: tuple[str, str] = ("0", "default_pg"),
    pg_id: int = 0,
    dtype: str = "Float",
    p2p: bool = False,
    where: str = "/home/me/train.py",
) -> dict[str, object]:
    """One entry of torch 2.6 and later (FlightRecorderDetail.hpp, getCollectiveTrace)."""
    sizes = [[elements]] if isinstance(elements, int) else [list(elements)]
    return {
        "frames": [
            {"name": "all_reduce", "filename": "/opt/torch/distributed/distributed_c10d.py", "line": 2501},
            {"name": "train", "filename": where, "line": 40},
        ],
        "record_id": sequence,
        "pg_id": pg_id,
        "process_group": group,
        "collective_seq_id": sequence,
        "p2p_seq_id": 0,
        "op_id": sequence,
        "profiling_name": name,
        "time_created_ns": 1_795_278_328 * NS + sequence * NS,
        "input_sizes": sizes,
        "input_dtypes": [dtype],
        "output_sizes": sizes,
        "output_dtypes": [dtype],
        "state": state,
        "time_discovered_started_ns": None,
        "time_discovered_completed_ns": None,
        "retired": state == "completed",
        "timeout_ms": 600000,
        "is_p2p": p2p,
    }


def history(
    last: int, *, waits: bool = True, state: str = "started", first: int = 1, name: str = "nccl:all_reduce"
) -> list[dict[str, object]]:
    """The collectives `first` to `last`, of which the last is not over (`waits`)."""
    return [
        entry(number, name, state=state if waits and number == last else "completed")
        for number in range(first, last + 1)
    ]


def dump(
    entries: Iterable[dict[str, object]], ranks: Sequence[int] = range(4), **more: object
) -> dict[str, object]:
    """The whole dump of torch 2.6 and later."""
    return {
        "version": "2.10",
        "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": str(list(ranks))}},
        "pg_status": {},
        "entries": list(entries),
        **more,
    }


def as_pickle(value: object, protocol: int = 2) -> bytes:
    """As TORCH_NCCL_DUMP_ON_TIMEOUT writes it."""
    return pickle.dumps(value, protocol)


def as_json(value: dict[str, object]) -> bytes:
    """As dump_nccl_trace_json writes it: keys in order, no frames, numbers of a status as texts."""
    entries = value["entries"]
    assert isinstance(entries, list)
    shorter = [{key: value for key, value in part.items() if key != "frames"} for part in entries]
    return json.dumps({**value, "entries": shorter}, sort_keys=True).encode()
