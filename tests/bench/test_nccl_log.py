"""The workers' NCCL logs: in memory, bounded, read by the one parser. Recorded lines stand for those of a GPU."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ncclcheck.bench import nccl_log
from ncclcheck.bench.nccl_log import LIMIT_BYTES, NcclLog, read_logs, with_log
from ncclcheck.bench.supervise import start
from ncclcheck.bench.task import WorkerTask
from ncclcheck.model.bench import BenchPlan
from ncclcheck.model.fact import Missing
from tests.checks.bench.nccl_runs import IB, NEW

_VARIABLE = "NCCLCHECK_TEST_NCCL_LIBRARIES"
LIBRARIES = [path for path in os.environ.get(_VARIABLE, "").split(":") if Path(path).is_file()]
_NONE = pytest.mark.skip(reason=f"no libnccl.so.2: set {_VARIABLE}")
PLAN = BenchPlan("nccl", ("all_reduce",), (1 << 10,), "float32", 0, 1, 5.0, verify=True)


def said(rank: int, **words: str) -> str:
    return NEW.format(
        host="somewhere", pid=4000 + rank, rank=rank, ranks=2, next=1 - rank, algorithm="RING", **words
    )


@pytest.fixture
def log() -> Iterator[NcclLog]:
    one = NcclLog(0)
    yield one
    one.close()


def write(log: NcclLog, text: str) -> None:
    """As NCCL does: a process that inherited the file opens the name, which empties it, and writes line by line."""
    code = "import os, sys\nwith open(os.environ['NCCL_DEBUG_FILE'], 'w') as log: log.write(sys.stdin.read())"
    subprocess.run(
        [sys.executable, "-c", code],
        input=text.encode(),
        env=with_log({}, log),
        pass_fds=[log.descriptor],
        check=True,
        timeout=30,
    )


def test_what_a_worker_wrote_is_read_under_the_reports_name_of_the_host(log: NcclLog) -> None:
    write(log, said(0, **IB))
    found = read_logs([log], "node01")
    assert not isinstance(found, Missing)
    (process,) = found
    assert (process.host, process.rank, process.ranks) == ("node01", 0, 2)
    assert (process.network, process.channels, process.algorithms) == ("IB", 16, ("AllReduce RING SIMPLE",))
    assert process.devices[0] == "mlx5_0:1/IB"
    assert process.settings == {}


def test_the_logs_of_several_ranks_are_told_apart(log: NcclLog) -> None:
    other = NcclLog(1)
    write(log, said(0, **IB))
    write(other, said(1, **IB))
    found = read_logs([log, other], "node01")
    other.close()
    assert not isinstance(found, Missing)
    assert sorted(process.rank or 0 for process in found) == [0, 1]


def test_an_empty_log_is_missing(log: NcclLog) -> None:
    assert isinstance(read_logs([log], "node01"), Missing)


def test_the_jobs_own_log_is_not_touched_and_a_finer_level_stays(log: NcclLog, tmp_path: Path) -> None:
    own = {"NCCL_DEBUG": "WARN", "NCCL_DEBUG_FILE": str(tmp_path / "job.log"), "NCCL_DEBUG_SUBSYS": "COLL"}
    changed = with_log(own, log)
    assert changed["NCCL_DEBUG"] == "INFO"
    assert changed["NCCL_DEBUG_FILE"] == f"/proc/self/fd/{log.descriptor}"
    assert "COLL" not in changed["NCCL_DEBUG_SUBSYS"]
    assert with_log({"NCCL_DEBUG": "trace"}, log)["NCCL_DEBUG"] == "trace"
    assert own["NCCL_DEBUG"] == "WARN"


def test_it_grows_no_more_than_its_bound_and_the_writer_goes_on(
    log: NcclLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nccl_log, "LIMIT_BYTES", 1 << 16)
    with Path(f"/proc/self/fd/{log.descriptor}").open("wb", buffering=0) as writer:
        writer.write(b"x" * (1 << 17))
        log.bound()
        with pytest.raises(PermissionError):
            writer.write(b"more")
    assert sum(map(len, log.chunks())) == 1 << 17
    assert LIMIT_BYTES == 16 << 20


def test_warnings_are_told_from_the_end(log: NcclLog) -> None:
    lines = [f"h:1:1 [0] NCCL INFO line {number}" for number in range(5000)]
    write(log, "\n".join([*lines, "h:1:1 [0] misc/socket.cc:1 NCCL WARN Call to bind failed", lines[0]]))
    assert log.warnings() == "h:1:1 [0] misc/socket.cc:1 NCCL WARN Call to bind failed\n"


@pytest.mark.parametrize("library", LIBRARIES or [pytest.param("", marks=_NONE)])
def test_the_real_library_writes_to_it(library: str, log: NcclLog) -> None:
    code = f"import ctypes; ctypes.CDLL({library!r}).ncclGetUniqueId(ctypes.create_string_buffer(128))"
    environment = with_log({"HOME": "/nonexistent", "NCCL_SOCKET_IFNAME": "=lo"}, log)
    subprocess.run(
        [sys.executable, "-c", code], env=environment, pass_fds=[log.descriptor], check=True, timeout=60
    )
    found = read_logs([log], "node01")
    assert not isinstance(found, Missing)
    assert found[0].interface == "lo"
    assert ctypes.sizeof(ctypes.c_char * 128) == 128


@pytest.mark.slow
def test_what_the_workers_of_a_node_wrote_is_known_after_their_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers whose interpreter writes NCCL's recorded lines as it starts; they end, since there is no GPU here."""
    (tmp_path / "sitecustomize.py").write_text(
        "import os\n"
        "if 'NCCL_DEBUG_FILE' in os.environ:\n"
        "    with open(os.environ['NCCL_DEBUG_FILE'], 'w') as log:\n"
        f"        log.write({said(0, **IB)!r})\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    task = WorkerTask(0, 2, 0, "127.0.0.1", 9, "test/", PLAN, ("node01", "node02"))
    running = start([task], {})
    try:
        deadline = time.monotonic() + 60
        while not running.poll()[1][0].error and time.monotonic() < deadline:
            time.sleep(0.05)
    finally:
        running.stop(5.0)
    assert not isinstance(running.transport, Missing)
    assert [(process.host, process.network) for process in running.transport] == [("node01", "IB")]


def test_of_a_rank_that_hangs_only_the_warnings_since_then_are_told(log: NcclLog) -> None:
    def add(line: str) -> None:
        os.write(log.descriptor, f"node01:7:9 [0] {line}\n".encode())

    add("NCCL WARN Missing iommu=pt from the kernel command line")
    log.follow(1000)
    add("NCCL INFO Connected all rings")
    log.follow(2000)
    log.follow(2000)
    assert log.warnings(since_progress=True) == ""
    add("NCCL WARN Cuda failure 'uncorrectable ECC error encountered'")
    log.follow(2000)
    assert log.warnings(since_progress=True).splitlines() == [
        "node01:7:9 [0] NCCL WARN Cuda failure 'uncorrectable ECC error encountered'"
    ]
    assert "iommu" in log.warnings()


def test_a_warning_that_comes_with_the_last_progress_is_not_lost(log: NcclLog) -> None:
    log.follow(1000)
    os.write(log.descriptor, b"node01:7:9 [0] NCCL WARN Cuda failure 700\n")
    log.follow(2000)  # both happened since the last look
    log.follow(2000)
    assert "Cuda failure 700" in log.warnings(since_progress=True)
