"""`watch` from start to end: the job as a child with the settings it gets, or one that runs already."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.cli.commands.prefix import Prefixed, become, read_prefixed
from ncclcheck.cli.files import refuse_hung
from ncclcheck.cli.screen import write_error
from ncclcheck.cli.watching.findings import (
    Teller,
    last_outputs,
    report_of,
    sentence,
    tell,
    tell_cause,
    write_report,
)
from ncclcheck.cli.watching.following import block_signals, follow
from ncclcheck.cli.watching.isolating import isolate_nodes
from ncclcheck.cli.watching.meeting import flags_of, meeting_of
from ncclcheck.cli.watching.peers import Peers
from ncclcheck.cli.watching.settings import added_settings, pipe_prefix, torch_version
from ncclcheck.cli.watching.status import remove_status
from ncclcheck.cli.watching.watch_coordinator import LeadPlan
from ncclcheck.cli.watching.watch_plan import WatchPlan
from ncclcheck.cli.watching.watcher import Watcher
from ncclcheck.facts.bounded_call import start
from ncclcheck.facts.job.rank_processes import stat_fields
from ncclcheck.facts.job.rank_stacks import NO_PY_SPY, py_spy
from ncclcheck.facts.network.names import host_name
from ncclcheck.model.errors import UsageError
from ncclcheck.model.exit_code import STOPPED
from ncclcheck.model.job.watched import Watch
from ncclcheck.report.watch_report import JobEnd
from ncclcheck.run.judge import start_clock
from ncclcheck.spawn.job import JobCommand, end_alike, end_processes, ended_status, exit_code_of, start_job
from ncclcheck.spawn.output.kept_output import KeptOutput
from ncclcheck.spawn.output.streams import own_streams
from ncclcheck.timeouts import WATCH_EXPLAIN_S, WATCH_STOP_S


def run_watched(option_values: Mapping[str, Any]) -> int:
    """Start the command, watch it to its end, and end as it does; return 4 where it was stopped for a hang."""
    if option_values["preflight"]:
        become(_checked_first(option_values), ())
    mask = block_signals()  # before any thread: each would take them
    clock = start_clock()
    prefixed = read_prefixed(option_values["command"], os.environ, flags_of(option_values))
    folder = _folder(option_values)
    added = {} if option_values["as_is"] else added_settings(prefixed.environ, folder, torch_version())
    _say_start(option_values, folder, added)
    environ = {**prefixed.environ, **added}
    shared = [stream for stream in own_streams() if stream.kind == "file" or not option_values["as_is"]]
    output = KeptOutput(folder, shared)
    if output.why_not:
        write_error(f"watch: the job's output is not kept: {output.why_not}")
    command = JobCommand(
        prefixed.program, prefixed.words, environ, mask, prefixed.inherited.ignored, output.for_job
    )
    try:
        job = start_job(command)
    except OSError as error:
        raise UsageError(f"{prefixed.words[0]} cannot be started: {error.strerror or error}") from error
    output.hand_over()
    ended = _Ended(job)
    peers = _peers(option_values, prefixed)
    watching = _Watching(option_values, Teller(folder, clock, bool(option_values["quiet"])), output)
    _watched(watching, _Job(job, ended.is_over, lambda: ended.status, pipe_prefix(environ), peers), ended)
    while not ended.is_over():  # it is ending
        os.waitid(os.P_PID, job, os.WEXITED | os.WNOWAIT)
    assert ended.status is not None  # noqa: S101 (the loop's condition)
    output.close()
    code = STOPPED if ended.hung else exit_code_of(ended.status)
    failed = ended.hung or (code != 0 and not ended.interrupted)
    _report_end(watching, ended, code, failed=failed)
    if failed and option_values["isolate"]:
        isolate_nodes(option_values, prefixed, folder)
    _clean(watching, failed=failed or ended.found.decision != "ok")
    if ended.hung:
        return STOPPED
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    return end_alike(ended.status)


def _report_end(watching: _Watching, ended: _Ended, code: int, *, failed: bool) -> None:
    """Explain what was kept of a job that failed, and write the last report."""
    option_values, teller = watching.option_values, watching.teller
    explained = None
    if failed or option_values["dir_"] is not None:
        watching.output.keep()
    if failed:
        explained = tell_cause(teller, watching.output_files, aloud=ended.speaks and not ended.hung)
    reason = "stopped for a hang" if ended.hung else f"the job ended with exit code {code}"
    report = report_of(ended.found, JobEnd(code, reason), teller.clock, explained)
    write_report(report, last_outputs(report, option_values, teller.folder))


def _checked_first(option_values: Mapping[str, Any]) -> Prefixed:
    """Return `preflight` as the command to become, which becomes this one where all checks pass."""
    program = (sys.executable, "-m", "ncclcheck")
    place = ("nnodes", "node_rank", "master_addr", "master_port", "nproc_per_node", "key_file")
    shared = _words(option_values, place)
    watch = _words(option_values, (*place, "dir_", "patience", "on_hang", "meet_port"))
    watch += [word for file in option_values.get("output") or () for word in ("--output", file)]
    watch += [f"--{name.replace('_', '-')}" for name in ("as_is", "quiet", "isolate") if option_values[name]]
    prefixed = read_prefixed(option_values["command"], os.environ, flags_of(option_values))
    quiet = ["--quiet"] if option_values["quiet"] else []
    words = (
        *program,
        "preflight",
        *shared,
        *quiet,
        "--",
        *program,
        "watch",
        *watch,
        "--",
        *option_values["command"],
    )
    return replace(prefixed, words=words, program=sys.executable)


def _words(option_values: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    """Return the options as words again."""
    options = [(name, option_values.get(name)) for name in names]
    return [
        word
        for name, value in options
        if value is not None
        for word in (f"--{name.strip('_').replace('_', '-')}", str(value))
    ]


def attach(option_values: Mapping[str, Any]) -> int:
    """Watch a job that runs, until it ends or we are interrupted; return the exit code of what was found."""
    pid = option_values["attach"]
    fields = stat_fields(pid)
    if not fields:
        raise UsageError(f"--attach {pid}: there is no such process on this node")
    if os.geteuid() not in (0, Path(f"/proc/{pid}").stat().st_uid):
        raise UsageError(f"--attach {pid}: it belongs to another user")
    block_signals()
    clock, folder = start_clock(), _folder(option_values)
    _say_start(option_values, folder, {})

    def is_over() -> bool:
        now = stat_fields(pid)
        return not now or now[0] in ("Z", "X") or now[19] != fields[19]

    ended = _Ended(0)
    watching = _Watching(
        option_values, Teller(folder, clock, bool(option_values["quiet"])), KeptOutput(folder, ())
    )
    _watched(watching, _Job(pid, is_over, lambda: None), ended)
    report = report_of(ended.found, None, clock)
    write_report(report, option_values)
    _leave_empty(folder)
    return STOPPED if ended.hung else report.verdict.exit_code


class _Ended:
    """How the job ended. State: its status as of wait(2), what was found, and whether it was stopped for that.

    `interrupted`: the user ended it. `speaks`: node 0 does not say it for this node.
    """

    def __init__(self, job: int) -> None:
        self.status: int | None = None
        self.found = Watch("ok")
        self.hung = self.interrupted = False
        self.speaks = True
        self._job = job

    def is_over(self) -> bool:
        """Return whether the job, our child, has ended."""
        self.status = ended_status(self._job) if self.status is None else self.status
        return self.status is not None


class _Watching(Struct, frozen=True):
    """What the user gave, where findings go, and the output that is kept."""

    option_values: Mapping[str, Any]
    teller: Teller
    output: KeptOutput

    @property
    def output_files(self) -> tuple[Path, ...]:
        """Return the files with the job's output."""
        return self.output.files


class _Job(Struct, frozen=True):
    """The job: its process, how to see that it ended and with what, torch's pipes, and the other nodes' watchers."""

    pid: int
    is_over: Callable[[], bool]
    status_of: Callable[[], int | None]
    pipes: str = ""
    peers: Peers | None = None


def _watched(watching: _Watching, job: _Job, ended: _Ended) -> None:
    option_values, teller = watching.option_values, watching.teller
    is_child = option_values["command"] is not None

    def heard(watch: Watch, aloud: bool) -> None:
        tell(teller, watch, aloud=aloud)
        if watch.decision in ("hang", "stopped"):
            explaining = start(_explain_now, watching, watch, aloud)
        stops = watch.decision == "hang" and option_values["on_hang"] == "stop"
        if stops and watcher.agrees_to_stop:
            ended.hung = watcher.interrupted = True
            explaining.result(WATCH_EXPLAIN_S)
            write_error(f"watch: ending the job (SIGTERM, then SIGKILL after {WATCH_STOP_S:g} s)")
            end_processes([*(rank.pid for rank in watcher.ranks), job.pid], WATCH_STOP_S)

    ras = os.environ.get("NCCL_RAS_ADDR") or "localhost"
    dumps = option_values["on_hang"] != "report"
    plan = WatchPlan(job.pid, teller.folder, option_values["patience"], dumps, job.pipes, ras, is_child)
    watcher = Watcher(plan, heard, job.peers)
    watcher.seen = watching.output.follow_rank
    follow(watcher, job.is_over, job.pid if is_child else None)
    is_led = job.peers is not None and job.peers.is_met and job.peers.lead is None
    watcher.close(job.status_of())
    ended.found = watcher.worst
    ended.speaks = not is_led or any(rank.host == host_name() for rank in ended.found.culprits)
    ended.interrupted = watcher.interrupted


def _explain_now(watching: _Watching, watch: Watch, aloud: bool) -> None:
    """Explain what is kept of a job that hangs, beside the looks at it, and add it to the report of now."""
    teller = watching.teller
    watching.output.keep()
    explained = tell_cause(teller, watching.output_files, aloud=aloud)
    if explained is not None and sentence(explained):
        report = report_of(watch, None, teller.clock, explained)
        write_report(report, last_outputs(report, {}, teller.folder))


def _peers(option_values: Mapping[str, Any], prefixed: Prefixed) -> Peers:
    """Begin to meet the watchers of the other nodes, beside the job."""
    plan = WatchPlan(0, Path(), option_values["patience"], dumps=False)

    def say(text: str) -> None:
        if not option_values["quiet"]:
            write_error(f"watch: {text}")

    return Peers(
        lambda: meeting_of(option_values, prefixed), LeadPlan(plan.look_s, plan.patience_s, plan.apart_s), say
    )


def _folder(option_values: Mapping[str, Any]) -> Path:
    """Make and return this node's folder. Raises UsageError where it cannot be made."""
    name = f"{host_name()}-{os.getpid()}"
    if option_values["dir_"] is None:
        return Path(tempfile.mkdtemp(prefix=f"ncclcheck-watch-{name}-"))
    refuse_hung(option_values["dir_"], "--dir")
    folder = Path(option_values["dir_"]).absolute() / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"--dir {option_values['dir_']}: cannot be made: {error.strerror or error}"
        ) from error
    return folder


def _clean(watching: _Watching, *, failed: bool) -> None:
    """Remove the output of a job without a failure from a folder that nobody asked for."""
    if not failed and watching.option_values["dir_"] is None:
        for file in watching.output_files:
            with suppress(OSError):
                file.unlink()
    _leave_empty(watching.teller.folder)


def _leave_empty(folder: Path) -> None:
    remove_status(folder)
    with suppress(OSError):  # what is in it stays
        folder.rmdir()


def _say_start(option_values: Mapping[str, Any], folder: Path, added: Mapping[str, str]) -> None:
    if py_spy() is None:
        write_error(f"watch: {NO_PY_SPY}")
    if option_values["quiet"]:
        return
    write_error(f"watch: evidence of a hang or failure goes to {folder}")
    for name, value in added.items():
        write_error(f"watch: set {name}={value}")
