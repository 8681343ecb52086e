"""Answers of NCCL RAS as src/ras/client_support.cc of several versions writes them: for tests."""

from __future__ import annotations

import json
from collections.abc import Mapping

HEAD = """NCCL version {version} compiled with CUDA 12.8
CUDA runtime version 12080, driver version 12090

Job summary
===========

  Nodes  Processes         GPUs  Processes     GPUs
(total)   per node  per process    (total)  (total)
      4          8            1         32       32

Communicators... (0.00s)
=============

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    0         1         4         8        32        32   RUNNING  {errors}

Errors
======

"""
HEALTHY = HEAD.format(version="2.27.7", errors="OK") + "Warnings\n========\n\n"

# v2.24.3: one count for all kinds of collectives (ras.rst has this sample).
COUNTS_2_24 = (
    HEAD.format(version="2.24.3", errors="MISMATCH")
    + """Warnings
========

#0-0 (27a079b828ff1a75) MISMATCH
  Communicator ranks have different collective operation counts
  30 ranks have launched up to operation 6650
  2 ranks have launched up to operation 6649
  Rank 0 -- GPU 0 managed by process 483072 on node 172.16.64.210
  Rank 2 -- GPU 2 managed by process 483074 on node 172.16.64.210

"""
)

# v2.26.2 and later: a count of each kind; a single rank on a line of its own; counts of 0 in words since 2.28.
COUNTS_2_28 = (
    HEAD.format(version="2.28.3", errors="MISMATCH")
    + """Warnings
========

#0-0 (27a079b828ff1a75) MISMATCH
  Communicator ranks have different status
  31 ranks have status RUNNING
  Rank 5 has status FINALIZE -- GPU 5 managed by process 77 on node 172.16.64.211
  Communicator ranks have different AllReduce operation counts
  31 ranks have launched up to operation 12
  Rank 7 has launched up to operation 11 -- GPU 1 (NVML 7) managed by process 483079 on node 172.16.64.213

  Communicator ranks have different Broadcast operation counts
  31 ranks have launched up to operation 3
  Rank 7 has not launched any operations -- GPU 1 (NVML 7) managed by process 483079 on node 172.16.64.213

"""
)

# v2.24.3 names missing ranks in a list, v2.30.7 on lines of their own.
MISSING_2_24 = (
    HEAD.format(version="2.24.3", errors="INCOMPLETE")
    + """INCOMPLETE
  Missing communicator data from 1 job process
  Process 3487984 on node 172.16.64.213 managing GPU 5

#0-0 (cf264af53edbe986) INCOMPLETE
  Missing communicator data from 1 rank
  The missing rank: 21

Warnings
========

TIMEOUT
  Encountered 2 communication timeouts while gathering communicator data

"""
)
MISSING_2_30 = (
    HEAD.format(version="2.30.7", errors="INCOMPLETE,ERROR")
    + """DEAD
  1 job process is considered dead (unreachable via the RAS network)
  Process 3487984 on node 172.16.64.213 managing GPU 5

#0-0 (cf264af53edbe986) INCOMPLETE
  Missing communicator data from 1 rank
  Rank 21 -- GPU 5 managed by process 3487984 on node 172.16.64.213

#0-0 (cf264af53edbe986) ERROR
  Asynchronous errors on 2 ranks
  2 ranks reported Remote process error

Warnings
========

"""
)


def as_json(
    counts: Mapping[int, int],
    *,
    missing: Mapping[int, bool] | None = None,
    async_errors: Mapping[int, int] | None = None,
) -> str:
    """JSON of 2.28.7 and later: AllReduce counts of each rank; `missing`: rank -> considered dead."""
    errors = async_errors or {}
    ranks = [
        {
            "rank": rank, "host": f"10.0.0.{rank // 2}", "pid": 1000 + rank, "cuda_dev": rank % 2, "nvml_dev": rank % 2,
            "status": {"init_state": 0, "async_error": errors.get(rank, 0), "finalize_called": False,
                       "destroy_flag": False, "abort_flag": False},
            "collective_counts": {"Broadcast": 1, "Reduce": 0, "AllGather": 0, "ReduceScatter": 0, "AllReduce": count},
        }
        for rank, count in counts.items()
    ]  # fmt: skip
    absent = [
        {"rank": rank, "host": f"10.0.0.{rank // 2}", "pid": 1000 + rank, "cuda_dev": 0, "nvml_dev": 0,
         "status": {"unresponsive": True, "considered_dead": dead}}
        for rank, dead in (missing or {}).items()
    ]  # fmt: skip
    communicator = {
        "hash": "0xae94423cfbb2ef4a", "secondary_hash": "0xb7e7187447156001:0xb8242ed28a71381e",
        "size": len(ranks) + len(absent), "ranks_count": len(ranks), "missing_ranks_count": len(absent),
        "ranks": ranks, "missing_ranks": absent,
    }  # fmt: skip
    return json.dumps(
        {
            "nccl_version": "2.29.1", "cuda_runtime_version": 13000, "cuda_driver_version": 13000,
            "timestamp": "2025-12-19 13:06:53", "communicators_count": 1, "communicators": [communicator],
            "ras": {"collection_time_sec": 0.0, "timeouts_count": 0},
        },
        indent=2,
    )  # fmt: skip


# As jsonWriteMissingRank of v2.28.9 prints it: no comma after the last `nvml_dev`.
MISSING_JSON_2_28_9 = """{
  "nccl_version": "2.28.9",
  "communicators": [
    {
      "hash": "0x27a079b828ff1a75",
      "size": 2,
      "ranks": [
        {
          "rank": 4,
          "host": "172.16.64.210",
          "pid": 483072,
          "cuda_dev": 0,
          "nvml_dev": 0,
          "status": {
            "init_state": 0,
            "async_error": 0
          },
          "collective_counts": {
            "AllReduce": 12
          }
        }
      ],
      "missing_ranks": [
        {
          "rank": 5,
          "host": "172.16.64.211",
          "pid": 77,
          "cuda_dev": 1,
          "nvml_dev": 1
          "status": {
            "unresponsive": true,
            "considered_dead": false
          }
        }
      ]
    }
  ],
  "ras": {
    "collection_time_sec": 0.003,
    "timeouts_count": 0
  }
}
"""
