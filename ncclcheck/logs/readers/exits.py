"""How workers ended, in their launchers' words: torchrun, Slurm, Open MPI, shells.

Source: torch/distributed/elastic/multiprocessing/{api,errors}.py, Slurm's srun, Open MPI's prterun and orterun.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from ncclcheck.logs.patterns.literals import needles
from ncclcheck.logs.readers.numbers import whole

_TORCHRUN = re.compile(r"failed \(exitcode: (?P<code>-?\d{1,4})\) local_rank: (?P<local>\d+)")
_EXIT_FIELD = re.compile(r"^\s*exitcode\s+: (?P<code>-?\d{1,4})")
_HOST_FIELD = re.compile(r"^\s*host {2,}: (?P<host>[\w.-]{1,255})")
_RANK_FIELD = re.compile(r"^\s*rank {2,}: (?P<rank>\d{1,6}) \(local_rank")
_ROOT = re.compile(r"Root Cause \(first observed failure\)")
_SRUN = re.compile(r"srun: error: (?P<host>[\w.-]{1,255}): tasks? (?P<tasks>[\d,-]{1,200}): (?P<how>.{1,80})")
_MPIRUN = re.compile(
    r"process rank (?P<rank>\d{1,6}) with PID \d+ on node (?P<host>[\w.-]{1,255}) "
    r"exited (?:on signal (?P<signal>\d{1,2})|\w+)"
)
_TEST_DEVICE = re.compile(
    r"# {1,3}Rank\s+(?P<rank>\d+) (?:Group\s+\d+ )?Pid\s+(?P<pid>\d+) on\s+(?P<host>[\w.-]+) device"
)
_RUNS_ON = re.compile(
    r"\b(?:[Rr]ank|[Pp]rocess|[Ff]ollower|[Ll]eader|[Ss]lave|[Mm]aster) +\(?(?P<rank>\d{1,6})\)? +"
    r"(?:of \d{1,6} +)?runs on (?:host|node)? *[=:]? *(?P<host>[A-Za-z][\w.-]{1,253})"
)
# Its ranks are numbered as the world's, a duplicate's too; those of a part are not.
_MPI_ABORT = re.compile(
    r"MPI_ABORT was invoked on rank (?P<rank>\d{1,6}) in communicator "
    r"(?:MPI_COMM_WORLD|MPI COMMUNICATOR \d{1,6} DUP FROM 0\b)"
)
_SAYS_WHERE = re.compile(
    r"MPICH ERROR \[Rank (?P<rank>\d{1,6})\] \[job id [^\]]{1,40}\] \[[^\]]{1,40}\] \[(?P<mpich>[\w.-]{1,253})\]|"
    r"\bjob\.exception .{0,80}\brank \d{1,6} on host (?P<flux>[\w.-]{1,253}) exited|"
    r"^Error: failed to run .{1,2000} on (?P<colossal>[\w.-]{1,253}), is localhost: |"
    r"^This process on node (?P<ray>[\w.:-]{1,253}) was started with:"
)  # MPICH, Flux, ColossalAI, and Ray where two versions meet
_MPI_FIRST = re.compile(
    r"^\s{1,8}Process name: \[(?:\[\d{1,10},\d{1,6}\]|[\w.-]{1,255}@\d{1,6}),(?P<rank>\d{1,6})\]\s*$"
)  # Open MPI's and PRRTE's first process that ended badly
_PDSH = re.compile(
    r"pdsh@[\w.-]{1,255}: (?P<host>[\w.-]{1,255}): ssh exited with exit code (?P<code>\d{1,3})"
)
_TEST_FAILED = re.compile(
    r"^ ?\.\. (?P<host>[\w.-]{1,255}) pid (?P<pid>\d{1,10}): Test failure|"
    r"^(?P<speaker>[\w.-]{1,255}): Test (?:NCCL|CUDA) failure"
)
_POD_ROW = re.compile(
    r"^(?P<pod>[a-z0-9][a-z0-9.-]{1,252})\s+\d+/\d+\s+(?P<state>OOMKilled|Error|CrashLoopBackOff|Evicted)\b"
)
_HYDRA_HOST = re.compile(r"^=\s+(?:PID|RANK) .{0,40}RUNNING AT (?P<host>[\w.-]{1,255})")
_HYDRA_CODE = re.compile(r"^=\s+(?:EXIT CODE|KILLED BY SIGNAL): (?P<code>\d{1,3})")
_DEEPSPEED = re.compile(r"exits with return code = (?P<code>-?\d{1,4})")
_SHELL = re.compile(
    r"^(?:(?:exit (?:code|status)|exited with(?: exit)? code):? |(?:rc|exit)=)(?P<code>-?\d{1,4})$",
    re.IGNORECASE,
)
_CODE = re.compile(r"exit code (?P<code>\d{1,3})")
PATTERNS = tuple(
    pattern.pattern
    for pattern in (
        _TORCHRUN, _EXIT_FIELD, _HOST_FIELD, _RANK_FIELD, _ROOT, _SRUN, _MPIRUN, _PDSH, _TEST_FAILED,
        _TEST_DEVICE, _RUNS_ON, _MPI_ABORT, _MPI_FIRST, _SAYS_WHERE, _POD_ROW,
        _HYDRA_HOST, _HYDRA_CODE, _DEEPSPEED, _SHELL,
    )
)  # fmt: skip
_may_match = re.compile(needles(PATTERNS)).search
_SIGNALLED = 128


class Ended(Struct, frozen=True):
    """What one line says about the end of a worker, or about where a rank is."""

    code: int | None = None
    rank: int | None = None
    local_rank: int | None = None
    tasks: tuple[int, ...] = ()
    host: str | None = None
    root: bool = False
    pid: int | None = None


def read(text: str) -> Iterator[Ended]:
    """Yield the ends in `text`. The fields of torchrun's table come one by one; the reader of the lines joins them."""
    if not _may_match(text.lower()):
        return
    if match := _SRUN.search(text):
        code = _CODE.search(match["how"])
        killed = "Out Of Memory" in match["how"] or "Killed" in match["how"]
        ended = -9 if killed else int(code["code"]) if code else -15 if "Terminated" in match["how"] else 1
        yield Ended(code=_signed(ended), tasks=tuple(_range(match["tasks"])), host=match["host"])
    elif match := _MPIRUN.search(text):
        ended = -int(match["signal"]) if match["signal"] else 1
        yield Ended(code=ended, tasks=(int(match["rank"]),), host=match["host"])
    elif match := _TORCHRUN.search(text):
        yield Ended(code=int(match["code"]), local_rank=int(match["local"]))
    elif match := _DEEPSPEED.search(text) or _EXIT_FIELD.search(text):
        yield Ended(code=int(match["code"]))
    elif match := _HOST_FIELD.search(text):
        yield Ended(host=match["host"])
    elif match := _RANK_FIELD.search(text):
        yield Ended(rank=int(match["rank"]))
    elif _ROOT.search(text):
        yield Ended(root=True)
    elif match := _TEST_DEVICE.search(text):
        yield Ended(rank=whole(match["rank"]), host=match["host"], pid=whole(match["pid"]))
    else:
        yield from _plainly_ended(text)


def _plainly_ended(text: str) -> Iterator[Ended]:
    """Yield what a shell, pdsh or nccl-tests says about an end."""
    if match := _PDSH.search(text) or _TEST_FAILED.search(text):
        groups = match.groupdict()
        yield Ended(code=_signed(int(groups.get("code", 1))), host=groups.get("speaker") or groups["host"])
    elif match := _RUNS_ON.search(text):
        yield Ended(rank=int(match["rank"]), host=match["host"], pid=0)
    elif match := _MPI_ABORT.search(text) or _MPI_FIRST.search(text):
        yield Ended(code=1, tasks=(int(match["rank"]),))
    elif match := _SAYS_WHERE.search(text):
        host = match["mpich"] or match["flux"] or match["colossal"] or match["ray"]
        yield Ended(code=1, tasks=(int(match["rank"]),) if match["rank"] else (), host=host)
    elif match := _HYDRA_HOST.search(text):
        yield Ended(host=match["host"])
    elif match := _HYDRA_CODE.search(text):
        code = int(match["code"])
        yield Ended(code=-code if code in (6, 9, 11, 15) else _signed(code))
    elif match := _POD_ROW.search(text):
        yield Ended(code=-9 if match["state"] == "OOMKilled" else 1, host=match["pod"])
    elif match := _SHELL.search(text):
        yield Ended(code=_signed(int(match["code"])))


def _signed(code: int) -> int:
    """Return a shell's 128+N as -N, the way Python and torchrun write a signal."""
    return _SIGNALLED - code if _SIGNALLED < code < 2 * _SIGNALLED else code


def _range(tasks: str) -> Iterator[int]:
    for part in tasks.split(","):
        first, _, last = part.partition("-")
        low, high = whole(first), whole(last or first)
        if low is not None and high is not None and 0 <= high - low < 65536:  # noqa: PLR2004 (Slurm's own limit of tasks)
            yield from range(low, high + 1)
