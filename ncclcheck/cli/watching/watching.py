"""`watch` from start to end: the job as a child with the settings it gets, or one that runs already."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ncclcheck.cli.commands.prefix import Prefixed, become, read_prefixed
from ncclcheck.cli.files import refuse_hung
from ncclcheck.cli.screen import write_error
from ncclcheck.cli.watching.company import Company
from ncclcheck.cli.watching.findings import last_outputs, report_of, tell
from ncclcheck.cli.watching.following import block_signals, follow
from ncclcheck.cli.watching.lead import LeadPlan
from ncclcheck.cli.watching.meeting import flags_of, meeting_of
from ncclcheck.cli.watching.plan import WatchPlan
from ncclcheck.cli.watching.settings import added_settings, pipe_prefix
from ncclcheck.cli.watching.status import remove_status
from ncclcheck.cli.watching.watcher import Watcher
from ncclcheck.facts.job.rank_processes import stat_fields
from ncclcheck.facts.job.rank_stacks import NO_PY_SPY, py_spy
from ncclcheck.facts.network.names import host_name
from ncclcheck.model.errors import UsageError
from ncclcheck.model.job.watched import Watch
from ncclcheck.report.watch import JobEnd
from ncclcheck.run.judge import RunClock, start_clock
from ncclcheck.spawn.job import JobCommand, end_alike, end_processes, ended_status, exit_code_of, start_job
from ncclcheck.timeouts import WATCH_STOP_S

STOPPED = 4


def run_watched(given: Mapping[str, Any]) -> int:
    """Start the command, watch it to its end, and end as it does; return 4 where it was stopped for a hang."""
    if given["preflight"]:
        become(_checked_first(given), ())
    mask = block_signals()  # before any thread: each would take them
    clock, folder = start_clock(), _folder(given)
    prefixed = read_prefixed(given["command"], os.environ, flags_of(given))
    added = {} if given["as_is"] else added_settings(prefixed.environ, folder)
    _say_start(given, folder, added)
    environ = {**prefixed.environ, **added}
    try:
        job = start_job(
            JobCommand(prefixed.program, prefixed.words, environ, mask, prefixed.inherited.ignored)
        )
    except OSError as error:
        raise UsageError(f"{prefixed.words[0]} cannot be started: {error.strerror or error}") from error
    status: int | None = None

    def is_over() -> bool:
        nonlocal status
        status = ended_status(job) if status is None else status
        return status is not None

    company = _company(given, prefixed)
    stopped = _watched(given, folder, clock, (job, pipe_prefix(environ), company), (is_over, lambda: status))
    while not is_over():  # it is ending
        os.waitid(os.P_PID, job, os.WEXITED | os.WNOWAIT)
    assert status is not None  # noqa: S101 (the loop's condition)
    code = STOPPED if stopped.hung else exit_code_of(status)
    reason = "stopped for a hang" if stopped.hung else f"the job ended with exit code {code}"
    report_of(stopped.found, JobEnd(code, reason), clock, last_outputs(stopped.found, given, folder))
    _leave_empty(folder)
    if stopped.hung:
        return STOPPED
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    return end_alike(status)


def _checked_first(given: Mapping[str, Any]) -> Prefixed:
    """Return `preflight` as the command to become, which becomes this one where all checks pass."""
    own = (sys.executable, "-m", "ncclcheck")
    place = ("nnodes", "node_rank", "master_addr", "master_port", "nproc_per_node", "key_file")
    shared = _words(given, place)
    watch = _words(given, (*place, "dir_", "patience", "on_hang", "meet_port"))
    watch += [word for file in given.get("output") or () for word in ("--output", file)]
    watch += [f"--{name.replace('_', '-')}" for name in ("as_is", "quiet") if given[name]]
    prefixed = read_prefixed(given["command"], os.environ, flags_of(given))
    quiet = ["--quiet"] if given["quiet"] else []
    words = (*own, "preflight", *shared, *quiet, "--", *own, "watch", *watch, "--", *given["command"])
    return replace(prefixed, words=words, program=sys.executable)


def _words(given: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    """Return the options as words again."""
    told = [(name, given.get(name)) for name in names]
    return [
        word
        for name, value in told
        if value is not None
        for word in (f"--{name.strip('_').replace('_', '-')}", str(value))
    ]


def attach(given: Mapping[str, Any]) -> int:
    """Watch a job that runs, until it ends or we are interrupted; return the exit code of what was found."""
    pid = given["attach"]
    fields = stat_fields(pid)
    if not fields:
        raise UsageError(f"--attach {pid}: there is no such process on this node")
    if os.geteuid() not in (0, Path(f"/proc/{pid}").stat().st_uid):
        raise UsageError(f"--attach {pid}: it belongs to another user")
    block_signals()
    clock, folder = start_clock(), _folder(given)
    _say_start(given, folder, {})

    def is_over() -> bool:
        now = stat_fields(pid)
        return not now or now[0] in ("Z", "X") or now[19] != fields[19]

    ended = _watched(given, folder, clock, (pid, "", None), (is_over, lambda: None))
    report = report_of(ended.found, None, clock, given)
    _leave_empty(folder)
    return STOPPED if ended.hung else report.verdict.exit_code


class _Ended:
    """How the watching ended: with which finding, and whether the job was stopped for it."""

    def __init__(self) -> None:
        self.found = Watch("ok")
        self.hung = False


def _watched(
    given: Mapping[str, Any],
    folder: Path,
    clock: RunClock,
    job: tuple[int, str, Company | None],
    ending: tuple[Callable[[], bool], Callable[[], int | None]],
) -> _Ended:
    ended, (pid, pipes, company), (is_over, status_of) = _Ended(), job, ending
    is_child = given["command"] is not None

    def heard(watch: Watch, aloud: bool) -> None:
        tell(watch, folder, clock, quiet=bool(given["quiet"]), aloud=aloud)
        stops = watch.decision == "hang" and given["on_hang"] == "stop"
        if stops and watcher.agrees_to_stop:
            ended.hung = True
            watcher.interrupted = True
            write_error(f"watch: ending the job (SIGTERM, then SIGKILL after {WATCH_STOP_S:g} s)")
            end_processes([*(rank.pid for rank in watcher.ranks), pid], WATCH_STOP_S)

    ras = os.environ.get("NCCL_RAS_ADDR") or "localhost"
    plan = WatchPlan(pid, folder, given["patience"], given["on_hang"] != "report", pipes, ras, is_child)
    watcher = Watcher(plan, heard, company)
    follow(watcher, is_over, pid if is_child else None)
    watcher.close(status_of())
    ended.found = watcher.worst
    return ended


def _company(given: Mapping[str, Any], prefixed: Prefixed) -> Company:
    """Begin to meet the watchers of the other nodes, beside the job."""
    plan = WatchPlan(0, Path(), given["patience"], dumps=False)

    def say(text: str) -> None:
        if not given["quiet"]:
            write_error(f"watch: {text}")

    return Company(
        lambda: meeting_of(given, prefixed), LeadPlan(plan.look_s, plan.patience_s, plan.apart_s), say
    )


def _folder(given: Mapping[str, Any]) -> Path:
    """Make and return this node's folder. Raises UsageError where it cannot be made."""
    name = f"{host_name()}-{os.getpid()}"
    if given["dir_"] is None:
        return Path(tempfile.mkdtemp(prefix=f"ncclcheck-watch-{name}-"))
    refuse_hung(given["dir_"], "--dir")
    folder = Path(given["dir_"]).absolute() / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--dir {given['dir_']}: cannot be made: {error.strerror or error}") from error
    return folder


def _leave_empty(folder: Path) -> None:
    remove_status(folder)
    with suppress(OSError):  # what is in it stays
        folder.rmdir()


def _say_start(given: Mapping[str, Any], folder: Path, added: Mapping[str, str]) -> None:
    if py_spy() is None:
        write_error(f"watch: {NO_PY_SPY}")
    if given["quiet"]:
        return
    write_error(f"watch: evidence of a hang or failure goes to {folder}")
    for name, value in added.items():
        write_error(f"watch: set {name}={value}")
