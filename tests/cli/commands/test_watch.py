"""`ncclcheck watch`: the job as without it, and real torch jobs on gloo that hang, die or only pause."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ncclcheck.facts.job.rank_processes import find_ranks
from ncclcheck.facts.job.rank_stacks import py_spy
from tests.cli.command_line import clean_environment, ncclcheck, refused
from tests.ports import free_port
from tests.waiting import until

ROOT = Path(__file__).parents[3]
WATCH = [sys.executable, "-m", "ncclcheck", "watch"]
NEEDS_STACKS = pytest.mark.skipif(
    py_spy() is None or os.geteuid() != 0, reason="needs py-spy, and root for it"
)
# A job of two ranks; `fault` runs on rank 1 after some steps.
JOB = """
import os, signal, sys, time
import torch
import torch.distributed as dist

def fault():
    {fault}

def train():
    gradient = torch.ones(1000)
    for step in range(10_000_000):
        if step == 100:
            os.write(1, b"training\\n")  # in one piece: two ranks write to one pipe
            if dist.get_rank() == {rank}:
                fault()
            {after}
        dist.all_reduce(gradient)
        time.sleep(0.005)

dist.init_process_group("gloo")
train()
"""


class Job:
    """A job behind `watch`."""

    def __init__(self, process: subprocess.Popen[bytes], errors: Path) -> None:
        self.process = process
        self._errors = errors

    def said(self, text: str, within_s: float = 180) -> str:
        """Return the line of watch with `text` in it, once it is there."""
        deadline = time.monotonic() + within_s
        while time.monotonic() < deadline:
            for line in self._errors.read_text(errors="replace").splitlines():
                if line.startswith("ncclcheck: watch:") and text in line:
                    return line
            time.sleep(0.1)
        raise AssertionError(f"{text!r} was not said: {self._errors.read_text(errors='replace')[-4000:]}")

    @property
    def all_said(self) -> str:
        """Return all that watch and the job have said on standard error."""
        return self._errors.read_text(errors="replace")


@contextmanager
def _started(folder: Path, script: str, *arguments: str) -> Iterator[Job]:
    (folder / "job.py").write_text(script)
    errors = folder / "errors"
    launch = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", str(free_port())]
    with (
        errors.open("wb") as stderr,
        subprocess.Popen(
            [
                *WATCH,
                "--dir",
                str(folder / "kept"),
                "--patience",
                "4",
                *arguments,
                "--",
                sys.executable,
                *launch,
                str(folder / "job.py"),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            env=clean_environment(PYTHONPATH=str(ROOT), OMP_NUM_THREADS="1"),
        ) as process,
        _ended(process),
    ):
        yield Job(process, errors)


def _looked_at(folder: Path) -> list[float]:
    """Return when each watcher of the folder looked last."""
    return [json.loads(path.read_bytes())["at_s"] for path in folder.glob("*/status.json")]


@contextmanager
def _ended(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """End the process with its test, also where that fails: leaving Popen waits for it without a limit."""
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()


def _job(fault: str, after: str = "pass", rank: int = 1) -> str:
    return textwrap.dedent(JOB).format(fault=fault, after=after, rank=rank)


def _line_of(script: str, text: str) -> int:
    return next(number for number, line in enumerate(script.splitlines(), 1) if text in line)


def _report(folder: Path) -> Any:
    (file,) = (folder / "kept").glob("*/report.json")
    return json.loads(file.read_text())


def test_the_exit_code_is_that_of_the_job_and_its_output_passes_through() -> None:
    done = ncclcheck("watch", "-q", "--", "sh", "-c", "echo out; echo err >&2; exit 7")
    assert (done.code, done.out) == (7, "out\n")
    assert done.err.splitlines()[-1] == "err"


def test_a_job_that_is_ended_by_a_signal_ends_watch_so_too() -> None:
    assert ncclcheck("watch", "-q", "--", "sh", "-c", "kill -9 $$").code == -signal.SIGKILL


def test_a_signal_reaches_the_job_once(tmp_path: Path) -> None:
    script = "trap 'echo came >> count; exit 5' TERM; echo on > on; while :; do sleep 0.05; done"
    with subprocess.Popen([*WATCH, "-q", "--", "sh", "-c", script], cwd=tmp_path, env=_environ()) as process:
        _until((tmp_path / "on").exists)
        process.terminate()
        assert process.wait(60) == 5
    assert (tmp_path / "count").read_text() == "came\n"


def test_the_job_goes_on_when_the_watcher_dies(tmp_path: Path) -> None:
    script = "echo $$ > pid; echo on > on; while ! test -e go; do sleep 0.05; done; echo done > done"
    with subprocess.Popen([*WATCH, "-q", "--", "sh", "-c", script], cwd=tmp_path, env=_environ()) as process:
        _until((tmp_path / "on").exists)
        process.kill()
        process.wait(60)
    (tmp_path / "go").touch()
    _until((tmp_path / "done").exists)


def test_what_is_unset_is_set_and_said_and_as_is_sets_nothing() -> None:
    show = ("--", "sh", "-c", "echo ${NCCL_DEBUG-unset} ${TORCH_FR_BUFFER_SIZE-unset}")
    added = ncclcheck("watch", *show, environ={"TORCH_FR_BUFFER_SIZE": "7"})
    assert added.out == "WARN 7\n"
    assert "watch: set NCCL_DEBUG=WARN" in added.err
    assert ncclcheck("watch", "--as-is", *show).out == "unset unset\n"


def test_the_report_has_the_exit_code_of_the_job(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    ncclcheck("watch", "-q", "--output", str(file), "--", "sh", "-c", "exit 3")
    report = json.loads(file.read_text())
    assert (report["command"], report["verdict"]["exit_code"], report["watch"]["decision"]) == (
        "watch",
        3,
        "ok",
    )


_OOM = "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 896.00 MiB."


@pytest.mark.slow
def test_after_a_failed_job_what_it_wrote_names_the_cause(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    words = ["watch", "-q", "--dir", str(tmp_path / "kept"), "--output", str(file)]
    done = ncclcheck(*words, "--", "sh", "-c", f"echo '{_OOM}' >&2; exit 3")
    assert done.code == 3
    assert "watch: what was kept names the cause" in done.err
    assert "the cause: cuda-oom on rank 3: " in done.err
    report = json.loads(file.read_text())
    assert report["verdict"]["exit_code"] == 3
    assert report["findings"][0]["slug"] == "cuda-oom"
    (kept,) = (tmp_path / "kept").glob("*/explain.json")
    assert json.loads(kept.read_text())["command"] == "explain"
    assert list((tmp_path / "kept").glob("*/report.json"))


def test_a_task_of_srun_that_fails_is_named_by_its_rank() -> None:
    done = ncclcheck("watch", "-q", "--", "sh", "-c", "sleep 3; kill -9 $$", environ={"SLURM_PROCID": "3"})
    assert done.code == -signal.SIGKILL
    assert "watch: rank 3 on " in done.err
    assert "was killed by SIGKILL" in done.err


def test_a_job_is_needed_and_only_one() -> None:
    assert "which job?" in refused(ncclcheck("watch"))
    assert "which job?" in refused(ncclcheck("watch", "--attach", "1234", "--", "true"))
    assert "no such process" in refused(ncclcheck("watch", "--attach", "999999999"))
    assert "no such command" in refused(ncclcheck("watch", "--", "no-such-command-here"))


def test_a_command_that_is_not_there_leaves_no_folder(tmp_path: Path) -> None:
    refused(ncclcheck("watch", "--", "no-such-command-here", environ={"TMPDIR": str(tmp_path)}))
    assert list(tmp_path.glob("ncclcheck-watch-*")) == []


@pytest.mark.parametrize(
    "words",
    [
        ("--attach", "4711", "--meet-port", "19493"),
        ("--attach", "4711", "--key-file", "key"),
        ("--attach", "4711", "--nnodes", "4"),
        ("--attach", "4711", "--as-is"),
        ("--status", "--dir", "kept", "--patience", "60"),
        ("--status", "--dir", "kept", "--output", "report.json"),
        ("--status", "--dir", "kept", "-q"),
    ],
)
def test_an_option_without_effect_is_refused(words: tuple[str, ...]) -> None:
    assert f"has no effect with {words[0]}" in refused(ncclcheck("watch", *words))


def test_preflight_is_not_for_a_job_that_runs() -> None:
    assert "leave one out" in refused(ncclcheck("watch", "--preflight", "--attach", "4711"))


@pytest.mark.slow
def test_with_preflight_the_job_is_checked_first_and_then_watched(tmp_path: Path) -> None:
    kept = str(tmp_path / "kept dir")
    words = [
        "watch",
        "--preflight",
        "--dir",
        kept,
        "--patience",
        "9",
        "--",
        "sh",
        "-c",
        "echo on; kill -9 $$",
    ]
    done = ncclcheck(*words)
    if "not started" in done.err or done.code == 1:
        assert "on\n" not in done.out  # this machine does not pass
    else:
        assert done.code == -signal.SIGKILL, done.err
        assert done.out.endswith("on\n")
        assert f"goes to {kept}" in done.err


@NEEDS_STACKS
@pytest.mark.slow
def test_a_job_that_hangs_already_is_attached_to_and_a_signal_has_it_looked_at_now(tmp_path: Path) -> None:
    script = _job("time.sleep(3600)")
    (tmp_path / "job.py").write_text(script)
    launch = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", str(free_port())]
    errors = tmp_path / "errors"
    with (
        errors.open("wb") as stderr,
        subprocess.Popen(
            [sys.executable, *launch, str(tmp_path / "job.py")],
            stdout=subprocess.PIPE,
            env=clean_environment(PYTHONPATH=str(ROOT), OMP_NUM_THREADS="1"),
        ) as torchrun,
        _ended(torchrun),
    ):
        assert torchrun.stdout is not None
        assert torchrun.stdout.readline() == b"training\n"
        assert torchrun.stdout.readline() == b"training\n"
        words = [*WATCH, "--attach", str(torchrun.pid), "--dir", str(tmp_path / "kept")]
        with subprocess.Popen(words, stderr=stderr, env=_environ()) as watch, _ended(watch):
            job = Job(watch, errors)
            job.said("evidence of a hang")
            looks: set[float] = set()

            def looked_twice() -> bool:
                looks.update(_looked_at(tmp_path / "kept"))
                return len(looks) > 2

            until(looked_twice, "two further looks")
            watch.send_signal(signal.SIGUSR1)
            line = job.said("the job hangs")
            watch.send_signal(signal.SIGINT)
            assert watch.wait(60) == 1
        assert "rank 1 on " in line
        assert f"job.py:{_line_of(script, 'time.sleep(3600)')} in fault" in line
        assert torchrun.poll() is None  # only the watching has ended


@NEEDS_STACKS
@pytest.mark.slow
@pytest.mark.further
def test_a_rank_that_sleeps_before_a_collective_is_named_with_its_line_and_stop_ends_the_job(
    tmp_path: Path,
) -> None:
    script = _job("time.sleep(3600)")
    with _started(tmp_path, script, "--on-hang", "stop") as job:
        line = job.said("the job hangs")
        assert job.process.wait(120) == 4
    assert "rank 1 on " in line
    assert f"job.py:{_line_of(script, 'time.sleep(3600)')} in fault" in line
    assert "rank 0 waits in all_reduce for it" in line
    watch = _report(tmp_path)["watch"]
    assert [culprit["rank"] for culprit in watch["culprits"]] == [1]
    assert any(file.endswith("rank-1.stacks.json") and Path(file).is_file() for file in watch["evidence"])


@pytest.mark.slow
@pytest.mark.further
def test_a_stopped_rank_and_then_a_killed_one_are_named_and_the_exit_code_is_torchrun_s(
    tmp_path: Path,
) -> None:
    script = _job("os.kill(os.getpid(), signal.SIGSTOP)")
    with _started(tmp_path, script) as job:
        line = job.said("is stopped")
        assert "rank 1 on " in line
        culprit = next(rank for rank in find_ranks(job.process.pid) if rank.rank == 1)
        os.kill(culprit.pid, signal.SIGKILL)
        died = job.said("was killed by")
        assert (
            f"rank 1 on {line.split('rank 1 on ')[1].split()[0]} (pid {culprit.pid}) was killed by SIGKILL"
            in died
        )
        assert job.process.wait(120) == 1


@pytest.mark.slow
@pytest.mark.further
def test_an_exception_names_the_rank_that_had_it(tmp_path: Path) -> None:
    with _started(tmp_path, _job("raise ValueError('broken')")) as job:
        assert job.process.wait(240) == 1
        assert "rank 1 on " in job.said("ended with exit code 1")
    assert _report(tmp_path)["verdict"]["exit_code"] == 1


@NEEDS_STACKS
@pytest.mark.slow
@pytest.mark.further
def test_another_collective_is_named(tmp_path: Path) -> None:
    with _started(tmp_path, _job("dist.barrier()")) as job:
        line = job.said("the job hangs")
    assert "another collective (barrier)" in line
    assert "another collective (all_reduce)" in line  # of two ranks nobody is the odd one


@NEEDS_STACKS
@pytest.mark.slow
@pytest.mark.further
def test_a_save_by_rank_0_and_a_pause_of_all_are_no_hang(tmp_path: Path) -> None:
    save = f"""end = time.monotonic() + 12
    with open({str(tmp_path / "saved")!r}, "wb", buffering=0) as file:
        while time.monotonic() < end:
            file.write(bytes(200_000))
            file.seek(0)
            time.sleep(0.1)"""
    pause = "dist.barrier(); time.sleep(14); print('paused', file=sys.stderr, flush=True)"
    with _started(tmp_path, _job(save, pause, rank=0)) as job:
        _until(lambda: "paused" in job.all_said, 240)
        said = job.all_said
    assert "the job hangs" not in said
    assert "no hang" in said  # the pause of all


def _environ() -> dict[str, str]:
    return clean_environment(PYTHONPATH=str(ROOT))


def _until(is_so: Any, within_s: float = 60) -> None:
    deadline = time.monotonic() + within_s
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)
