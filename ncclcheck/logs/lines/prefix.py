"""Remove what stands before a message (launchers' labels, hosts, time stamps, colours) and keep what it says."""

from __future__ import annotations

import re

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.logs.lines.loggers import after_logger

_MOST_LAYERS = 8  # `[pod/a/b] 2025-...Z [default0]:[rank0]: ` has four
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_ANSI_BYTES = re.compile(_ANSI.pattern.encode())

_TIME = (
    r"(?:\d{4}[-/])?(?P<month>\d\d)[-/](?P<day>\d\d)[T_ ]"
    r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d(?:[.,]\d+)?)"
)
_ISO = re.compile(rf"\[?{_TIME}(?:Z|[+-]\d\d:?\d\d)?,?\]?:?[ \t]?")
_CLOCK = re.compile(r"\[?(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d(?:[.,]\d+)?)\]?[ \t]")
_GLOG = re.compile(
    r"\[?[IWEF](?P<month>\d{1,2}?)(?P<day>\d\d) (?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d(?:\.\d+)?) "
)
_TORCH = re.compile(
    r"(?P<letter>[EF])\d{4} \d\d:\d\d:\d\d\.\d{3,6} \d{1,20} (?:site-packages/)?torch/[\w/]{1,120}\.py:\d{1,6}\] ?"
)  # of torch's own logger: a traceback that it writes stands behind it line by line
_HOROVOD = re.compile(
    r"[A-Z][a-z]{2} [A-Z][a-z]{2} {1,2}\d{1,2} \d\d:\d\d:\d\d \d{4}\[(?P<task>\d{1,6})\]<(?:stdout|stderr)>: ?"
)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_SYSLOG = re.compile(
    r"(?P<name>[A-Z][a-z]{2}) {1,2}(?P<day>\d{1,2}) (?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d(?:\.\d+)?) "
    r"(?P<host>[\w.-]{1,255}) (?P<program>[\w./@:-]{1,64}?)(?:\[\d+\])?: "
)
_DMESG_DATE = re.compile(
    r"\[[A-Z][a-z]{2} (?P<name>[A-Z][a-z]{2}) {1,2}(?P<day>\d{1,2}) "
    r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d) \d{4}\] ?"
)
_DMESG = re.compile(r"\[ {0,8}(?P<uptime>\d{1,9}\.\d{3,6})\] ?")

_TASK = re.compile(r" {0,6}(?P<task>\d{1,6}): ?")
_RAISED = re.compile(
    r"\[(?P<task>\d{1,5})\] (?=Traceback|  File |(?:\w{1,40}\.){0,6}\w{1,40}(?:Error|Exception)\b)"
)  # Hydra
_OPEN_MPI = re.compile(
    r"\[(?:\d{1,6},)?(?P<task>\d{1,6})\]<(?:stdout|stderr|stddiag)>: ?"
)  # and Horovod's, without a job
_PRRTE = re.compile(r"\[(?:prterun-|mpirun-|mpiexec-)?[\w.@-]{0,255},(?P<task>\d{1,6})\](?:<\w+>)?: ?")
_LOCAL = re.compile(
    r"\[(?:default|trainer|worker|role)_?(?P<local>\d{1,4})(?:\|\d{1,6})?\]: ?", re.IGNORECASE
)
_RANK = re.compile(
    r"\[?\(?(?:rank|(?<=\[)proc(?:ess)?)[ _:#=-]{0,2}(?P<rank>\d{1,6})\)?\]?(?:[:,]|(?<=\])|(?<=\))|(?=\s)) ?",
    re.IGNORECASE,
)
_DETERMINED = re.compile(r"[0-9a-f]{8} (?:\[rank=(?P<rank>\d{1,6})\] )?\|\| ")
_SAGEMAKER = re.compile(r"\[\d{1,6},mpirank:(?P<rank>\d{1,6}),(?P<host>[\w.-]{1,253})\]<\w{1,10}>: ?")
_VERTEX = re.compile(
    r"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)\t(?:\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d{4}\t)"
    r"(?P<host>[a-z][\w-]{0,40}\d)\t"
)  # gcloud ai custom-jobs stream-logs
_LISTED = re.compile(
    r"\((?P<host>[\w.-]{1,253}), rank=(?P<rank>\d{1,6}), pid=\d{1,10}(?:, ip=[\w.:]{2,45})?\) ?"
)
_SWITCH = re.compile(r"nvidia-nvswitch\d{1,3}: (?=SXid)")  # as the kernel calls it: no host
_OF_STREAM = re.compile(
    r"(?P<host>[A-Za-z0-9][\w.-]{0,253}):(?P<local>\d{1,4}) (?:out|err): ?"
)  # of a node's process
_POD = re.compile(r"\[?(?:pod/)(?P<pod>[\w.-]{1,253})(?:/[\w.-]{1,63})?\]?[: ] ?")
_BRACKET = re.compile(r"\[(?P<word>[A-Za-z][\w.-]{0,62}|\d{1,3}(?:\.\d{1,3}){3})\] ?")
_PIPED = re.compile(
    r"(?P<word>[A-Za-z0-9][\w.-]{0,62})(?: {0,40}\|| {1,4}>>) ?"
)  # docker compose and the like
_ROUND = re.compile(
    r"\((?:(?:node|host) (?P<host>[\w.:-]{1,253})|(?P<word>(?:node|host|worker|master)[\w.-]{0,62}))"
    r"(?:, [\d.:]{3,45})?\) ?"
)
_TWO_WORDS = re.compile(r"\[(?:node|host|rank|worker)[ _-]?\d{1,5} (?P<word>[A-Za-z][\w.-]{0,62})\] ?")
_WORD = re.compile(r"(?P<word>[A-Za-z0-9][\w.-]{0,62}): ")
_NODE = re.compile(r"node (?P<word>[A-Za-z0-9][\w.-]{0,62}): ")
_ACTOR = re.compile(
    r"\((?:(?:Vllm)?Worker[_ ]TP(?P<tensor>\d{1,4})(?:_EP\d{1,4})?(?= pid=)|"
    r"\w{1,64}(?:\([\w.-]{1,64}\)|(?::\w{1,64}){1,3})?(?= rank=| pid=|, ip=)|(?=pid=))"
    r"(?: rank=(?P<rank>\d{1,6}))?(?: ?pid=\w{1,20})?"
    r"(?:, ip=(?P<ip>[0-9a-fA-F.:]{2,45}))?\) ?"
)  # Ray and vLLM
_KERNEL = re.compile(r"(?P<host>[A-Za-z0-9][\w.-]{0,253}) kernel: ")
_MPI_PROCESS = re.compile(
    r"(?:\[\d{10}\.\d{3,9}\] {1,3})?"
    r"\[(?P<host>(?!\d{4}-\d\d-\d\dT)(?=[\w.-]{0,253}[A-Za-z])[A-Za-z0-9][\w.-]{0,253})"
    r":\d{2,10}(?: {0,8}:\d{1,4}(?::\d{1,10})?)?\] {1,3}"
)  # UCX and Open MPI: host and process
_SOURCE_FILE = re.compile(r"\.(?:py|cpp|cc|cu|cuh|c|h|hpp|rs|go|pyx|js|ts)$")
_TORCHX = re.compile(
    r"[\w.-]{1,64}/\d{1,5} (?=\[(?:default|rank)\d{1,6}\]:|[IWE]\d{4} \d\d:)"
)  # role and replica
# CRI writes F for a full line; who collects journals writes where a line is from
_STREAM = re.compile(r"\[?(?:stdout|stderr)\]?[: ] ?(?:[FP] )?|\[(?:host|kernel|dmesg|journal|syslog)\] ")

_NO_HOSTS = frozenset(
    {
        "info", "warning", "warn", "error", "err", "debug", "critical", "fatal", "note", "notice",
        "trace", "verbose", "exception", "traceback", "hint", "usage", "srun", "slurmstepd", "mpirun",
        "mpiexec", "prterun", "orterun", "prte", "kernel", "python", "python3", "bash", "sh", "torchrun",
        "accelerate", "deepspeed", "nvrm", "dmar", "libibverbs", "libfabric", "ucx", "ld.so", "step",
        "epoch", "iter", "iteration", "it", "loss", "train", "eval", "val", "test", "rank", "local_rank",
        "nccl", "gloo", "device", "gpu", "cuda", "host", "master", "env", "warning:", "file", "http",
        "https", "process", "pid", "time", "exitcode", "error_file", "docker", "run.sh", "elapsed",
        "total", "progress", "map", "downloading", "loading", "saving", "state", "rate", "port", "stdout",
        "stderr", "failed", "fail", "failure", "success", "passed", "aborted", "killed", "assertion",
        "nvidia-imex", "nvidia-fabricmanager", "nvidia-smi", "systemd", "kubelet", "containerd", "dockerd",
        "make", "machine_rank", "node_rank", "num_machines", "main_process_ip", "main_process_port", "num_processes",
        "name", "namespace", "status", "reason", "message", "labels", "annotations", "started", "finished",
        "containers",
        "command", "args", "limits", "requests", "events", "type", "age", "ip", "priority", "node", "image", "ready",
        "utf-8", "utf8", "ascii", "output", "input", "hostname",
        "ls", "cat", "df", "grep", "ps", "amd-vi", "iommu", "pcieport", "ssh", "sshd", "modprobe", "ulimit", "wandb",
    }
)  # fmt: skip
_RESULT = re.compile(r"(?:nccl|cuda|hip)[A-Z]")  # ncclInvalidUsage
_CLASS = re.compile(
    r"(?:\w+\.)*\w*(?:Error|Exception|Interrupt|Exit|Warning|Failure|Iteration|Timeout|error)$"
)


class Prefix(Struct, frozen=True):
    """What the labels before a message say. `word` may be a host, or not: `ncclcheck.logs.lines.origin` decides."""

    message: str
    task: int | None = (
        None  # srun's or mpirun's number: a rank, or a node where each task starts several ranks
    )
    rank: int | None = None
    local_rank: int | None = None
    host: str | None = None
    word: str | None = None
    time_s: float | None = None
    level: str | None = None  # as a logger wrote it


def parse(text: str) -> Prefix:
    """Return the message without the labels before it, and what these say. Any text gives an answer."""
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    found = Prefix(text)
    for _ in range(_MOST_LAYERS):
        after = _single_prefix(found)
        if after is None:
            break
        found = after
    return found


def without_colours(line: bytes) -> bytes:
    """Return the line without a terminal's escape sequences."""
    return _ANSI_BYTES.sub(b"", line)


def _single_prefix(found: Prefix) -> Prefix | None:
    """One label further, or None where the message begins."""
    text = found.message
    if not text:
        return None
    first = text[0]
    if first.isdigit() or first in "[ ":
        after = _of_platform(found) or _timed(found) or _numbered(found)
        if after is not None:
            return after
    if first.isupper() and (after := _in_capitals(found)):
        return after
    if first == "(" and (after := _bracketed(found)):
        return after
    if match := _KERNEL.match(text):
        return replace(found, message=text[match.end() :], host=match["host"])
    if match := _RANK.match(text):
        return replace(found, message=text[match.end() :], rank=int(match["rank"]))
    if match := _POD.match(text):
        return replace(found, message=text[match.end() :], host=match["pod"])
    return _of_platform(found) or _logged(found) or _worded(found)


def _in_capitals(found: Prefix) -> Prefix | None:
    """Take what begins with a letter for the level, as torch and glog write it, or with a day or month."""
    text = found.message
    if match := _TORCH.match(text):
        return replace(found, message=text[match.end() :], level=found.level or "ERROR")
    if found.time_s is None and text[0] in "IWEF" and (match := _GLOG.match(text)):
        return replace(found, time_s=_seconds(match))
    if match := _HOROVOD.match(text):
        return replace(found, message=text[match.end() :], task=int(match["task"]))
    if match := _SYSLOG.match(text):
        timed = replace(found, message=text[match.end() :], time_s=_seconds(match))
        return timed if match["host"] in _NO_HOSTS else replace(timed, host=match["host"])
    return None


def _bracketed(found: Prefix) -> Prefix | None:
    """Take the label of an actor (Ray, vLLM), or a node's name, in round brackets."""
    text = found.message
    if match := _ACTOR.match(text):
        number = match["rank"] or match["tensor"]
        rank = int(number) if number else found.rank
        return replace(found, message=text[match.end() :], rank=rank, host=match["ip"] or found.host)
    if match := _ROUND.match(text):
        after = replace(found, message=text[match.end() :])
        return replace(after, host=match["host"]) if match["host"] else replace(after, word=match["word"])
    return None


def _of_platform(found: Prefix) -> Prefix | None:
    """Take the label of torchx, Determined, SageMaker, and of launchers that list host, rank and process id."""
    if match := _TORCHX.match(found.message):
        return replace(found, message=found.message[match.end() :])
    for pattern in (_DETERMINED, _SAGEMAKER, _VERTEX, _LISTED, _OF_STREAM, _MPI_PROCESS):
        if match := pattern.match(found.message):
            groups = match.groupdict()
            if pattern in (_MPI_PROCESS, _OF_STREAM) and (
                _SOURCE_FILE.search(match["host"]) or not is_name(match["host"])
            ):
                continue
            rank = int(groups["rank"]) if groups.get("rank") else found.rank
            local = int(groups["local"]) if groups.get("local") else found.local_rank
            rest = found.message[match.end() :]
            return replace(
                found, message=rest, rank=rank, local_rank=local, host=groups.get("host") or found.host
            )
    return None


def _logged(found: Prefix) -> Prefix | None:
    after = after_logger(found.message)
    if after is None:
        return None
    message, rank, level = after
    rank = found.rank if rank is None else rank
    return replace(found, message=message, rank=rank, level=found.level or level)


def _timed(found: Prefix) -> Prefix | None:
    text = found.message
    for pattern in (_ISO, _CLOCK, _DMESG_DATE):
        if match := pattern.match(text):
            return replace(found, message=text[match.end() :], time_s=_seconds(match))
    if match := _DMESG.match(text):
        return replace(found, message=text[match.end() :], time_s=found.time_s)
    if found.time_s is None and (match := _GLOG.match(text)):
        # The letter, the source line and the rest are the message's own; only the time is noted.
        return replace(found, time_s=_seconds(match))
    return None


def _numbered(found: Prefix) -> Prefix | None:
    text = found.message
    for pattern in (_OPEN_MPI, _TASK, _PRRTE, _RAISED):
        if match := pattern.match(text):
            return replace(found, message=text[match.end() :], task=int(match["task"]))
    if match := _LOCAL.match(text):
        return replace(found, message=text[match.end() :], local_rank=int(match["local"]))
    return None


def _worded(found: Prefix) -> Prefix | None:
    text = found.message
    if match := _STREAM.match(text) or _SWITCH.match(text):
        return replace(found, message=text[match.end() :])
    for pattern in (_NODE, _TWO_WORDS, _BRACKET, _PIPED, _WORD):
        match = pattern.match(text)
        if match and is_name(match["word"]) and found.word in (None, match["word"]):
            return replace(found, message=text[match.end() :], word=match["word"])
    return None


def is_name(word: str) -> bool:
    """Return True if a word before a colon may be a host, and is no level, program or class of an exception."""
    if word.isupper() and "_" in word:  # the name of a state or variable
        return False
    return (
        not _RESULT.match(word)
        and word.lower() not in _NO_HOSTS
        and not _CLASS.match(word)
        and not word.isdigit()
    )


def _seconds(match: re.Match[str]) -> float:
    """Seconds since the beginning of the year, with months of 31 days: made for comparing, not for calendars."""
    groups = match.groupdict()
    month = groups.get("month")
    if month is None:
        name = groups.get("name")
        month = str(_MONTHS.index(name) + 1) if name in _MONTHS else "0"
    days = int(month) * 31 + int(groups.get("day") or 0)
    second = float(groups["second"].replace(",", "."))
    return days * 86400 + int(groups["hour"]) * 3600 + int(groups["minute"]) * 60 + second
