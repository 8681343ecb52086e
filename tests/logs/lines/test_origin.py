"""Whose line it is: from all lines together."""

from __future__ import annotations

from ncclcheck.model.events import PythonException
from tests.checks.logs.explaining import read


def places(text: str, **further: str) -> list[tuple[int | None, str | None]]:
    log = read(text, **further)
    return [
        (event.place.rank, event.place.host) for event in log.events if isinstance(event, PythonException)
    ]


def test_a_task_of_srun_is_a_rank() -> None:
    assert places("2: starting\n5: ValueError: x\n") == [(5, None)]


def test_a_task_that_starts_several_ranks_is_a_node() -> None:
    text = """
0: [rank1]: ValueError: x
1: [rank2]: ValueError: x
1: TypeError: launcher
1: host7:1:2 [0] NCCL INFO an error
"""
    assert places(text) == [(1, None), (2, "host7"), (None, "host7")]


def test_a_word_before_every_line_is_a_host() -> None:
    assert places("gpu7: hello\ngpu7: more\ngpu7: ValueError: x\n") == [(None, "gpu7")]


def test_a_word_before_one_line_is_not() -> None:
    assert places("hello\nmore\nlines\nhere\nresult: ValueError: x\n") == [(None, None)]


def test_a_process_is_known_by_its_communicator() -> None:
    text = """
n3:11:12 [1] NCCL INFO comm 0x1 rank 9 nranks 16 cudaDev 1 busId 1 commId 0x2 - Init START
[rank9]: ValueError: x
"""
    assert places(text) == [(9, "n3")]


def test_files_of_ranks() -> None:
    assert places("ok\n", **{"out/rank3.log": "ValueError: x\n"}) == [(3, None)]


def test_files_of_nodes() -> None:
    assert places("ok\n", **{"logs/worker-7.txt": "ValueError: x\n"}) == [(None, "worker-7")]


def test_slurm_tells_the_host_of_a_task() -> None:
    log = read("3: ValueError: x\nsrun: error: nod2: task 3: Exited with exit code 1\n")
    assert log.hosts_of_ranks == {3: "nod2"}
