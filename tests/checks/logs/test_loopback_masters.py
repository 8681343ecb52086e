"""Masters at loopback addresses: wrong for every node but the first."""

from __future__ import annotations

import pytest

from tests.logs.rounds import explain

WAITED = "n1: torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 1/2 clients joined.\n"


def torchrun(rank: int, master: str) -> str:
    return f"n{rank + 1}: + torchrun --nnodes=2 --node-rank={rank} --master-addr={master} train.py\n"


@pytest.mark.parametrize("master", ["127.0.0.1", "localhost"])
def test_a_later_node_with_a_loopback_master_looks_on_itself(master: str) -> None:
    found = explain("job.log", (torchrun(0, "n1") + torchrun(1, master) + WAITED).encode()).findings[0]
    assert (found.slug, found.hosts) == ("master-addr-wrong", ("n2",))


def test_the_first_node_may_call_itself_localhost() -> None:
    found = explain("job.log", (torchrun(0, "localhost") + torchrun(1, "n1") + WAITED).encode()).findings
    assert "master-addr-wrong" not in [finding.slug for finding in found]


def test_a_job_that_worked_had_the_right_master() -> None:
    works = "".join(f"step {step} loss 2.{step}\n" for step in range(1, 6))
    found = explain("job.log", (torchrun(1, "localhost") + works).encode())
    assert found.outcome == "healthy"
