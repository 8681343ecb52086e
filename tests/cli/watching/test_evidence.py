"""What is kept of a job: stacks, the kernel's view, and dumps that were asked for through a pipe."""

from __future__ import annotations

import os
import select
import threading
from pathlib import Path

from ncclcheck.cli.watching.evidence import dump_recorders, keep
from ncclcheck.facts.job.rank_processes import RankProcess

OURS = RankProcess(3, os.getpid(), "0")


def test_stacks_and_the_kernel_s_view_are_kept_by_rank(tmp_path: Path) -> None:
    files = keep(tmp_path, 1, [OURS], {os.getpid(): b"[]"})
    assert [Path(file).name for file in files] == ["rank-3.stacks.json", "rank-3.proc.txt"]
    assert "Threads:" in Path(files[1]).read_text()
    assert keep(tmp_path, 1000, [OURS], {}) == []  # so often is not telling any more


def test_the_recorder_is_asked_through_its_pipe_without_waiting(tmp_path: Path) -> None:
    prefix = str(tmp_path / "nccl_pipe_rank_")
    assert dump_recorders(prefix, [OURS], tmp_path) == []  # no pipe
    os.mkfifo(f"{prefix}3.pipe")
    assert dump_recorders(prefix, [OURS], tmp_path) == []  # nobody reads
    reader = os.open(f"{prefix}3.pipe", os.O_RDONLY | os.O_NONBLOCK)

    def rank() -> None:
        if select.select([reader], [], [], 30)[0] and os.read(reader, 10) == b"1\n":
            (tmp_path / "nccl_trace_rank_3").write_bytes(b"dump")

    thread = threading.Thread(target=rank)
    thread.start()
    assert dump_recorders(prefix, [OURS], tmp_path) == [str(tmp_path / "nccl_trace_rank_3")]
    thread.join()
    os.close(reader)


def test_what_is_no_pipe_in_its_place_is_not_written_to(tmp_path: Path) -> None:
    """The user's variable may name a folder that others write to, as /tmp."""
    victim, pipe = tmp_path / "victim", tmp_path / "nccl_pipe_rank_3.pipe"
    victim.write_text("precious")
    for plant in (os.symlink, os.link):
        plant(victim, pipe)
        assert dump_recorders(str(tmp_path / "nccl_pipe_rank_"), [OURS], tmp_path) == []
        assert victim.read_text() == "precious"
        pipe.unlink()
