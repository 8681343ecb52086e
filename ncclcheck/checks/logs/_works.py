"""What shows that a job worked, and that it went on after something went wrong. Pure.

A program that was able to go on says so by what it does next, whatever its last error was: several steps, rates or
answers after it. A log that has words of the program and none of these shows only that it was started.
"""

from __future__ import annotations

import re

from ncclcheck.checks.logs._job_rows import rows_of_success
from ncclcheck.checks.subject_cache import once_per_subject
from ncclcheck.logs.lines.progress import RECENT
from ncclcheck.logs.lines.prompts import AT_HOST, BRACKETED, ENVIRONMENT, SIGNS
from ncclcheck.model.events import CommInit, Event, Log, LogPosition, PythonException, Remark, WorkerExit

_WHOLE = re.compile(
    r"return ?code|train|epochs\b|\bjob\b|\brun\b|\ball\b|\bexit|succe|HTTP/1|\bfit\b|concluded|bounds|total",
    re.IGNORECASE,
)
# Words of success that are about a beginning: a job was submitted, an image downloaded, a library opened.
_BEGINS = re.compile(
    r"\b(?:submitted|schedul\w+|assigned|download\w*|image|in progress|queued|created|opened|loaded|imported|installed|"
    r"resolved|initiali[sz]\w*|not success\w*|but|or (?:interrupted|failed|aborted))\b",
    re.IGNORECASE,
)
# A server that is ready, or that answered, goes on; so may a program after its tracker has closed the run.
_SERVES = re.compile(
    r"HTTP/1|\b200 OK\b|throughput|startup complete|[Rr]unning on|fired up|Started \w+ ?Service|Shard ready|"
    r": (?:Connected|Success)$|health check server|Deployed app|is ready at http|starting the main loop|"
    r"Program ended successfully|W&B process"
)
_READY = re.compile(r"startup complete|Uvicorn running on|fired up|is ready at http|Started \w+ ?Service")
_HANGS = re.compile(
    r"hang|hung|stuck|stall|not responding|no progress|unreachable|unresponsive|dead", re.IGNORECASE
)
_ONE_OF_MANY = re.compile(
    r"\b(?:round|local|shard|rollout|warm-?up)\b|"
    r"^(?!.*'train_runtime')(?!.*(?:training|run|job)\b.{0,40}(?:finished|done|complete))"
    r"(?!.*[Ff]inished training).*\b(?:epoch|step|iteration|saving|validation|eval\w*|test)\b",
    re.IGNORECASE,
)
# A command that a person typed: its words, such as the `done` of a loop, are no words of the job.
_TYPED = re.compile(rf"{ENVIRONMENT}(?:{BRACKETED}{SIGNS}|{AT_HOST}{SIGNS}|\$) ?[\w./~(\"'*]")
_STEP = re.compile(
    r"\b(?:step|epoch|iter\w*|loss|accuracy)\b|\b(?:it|samples|img|images)/s|\d%\|", re.IGNORECASE
)
_ENDS_OF_A_TEST = frozenset(
    {
        "finished",
        "bandwidth-measured",
        "launched",
        "error-line",
        "nccl-warn",
        "crash",
        "generic-nccl",
        "wrong-results",
    }
)
# What the machine, its kernel or the results say stays true, whatever the job writes after it.
_LASTING = frozenset(
    {"wrong-results", "xid", "gpu-lost", "ecc", "iommu-fault", "host-oom", "ib-hardware", "shm", "fabric"}
)


def went_on_after(log: Log, place: LogPosition, *, after: int = RECENT) -> bool:
    """Return True if the program wrote so many lines in the same file after it that only a program at work writes."""
    lines = log.works.get(place.file, ())
    return sum(line > place.line for line in lines) >= after or _was_left_in_order(log, place)


def served_after(log: Log, place: LogPosition) -> bool:
    """Return True if a server of the same file said after it that it is ready."""
    return _last_ready(log).get(place.file, 0) > place.line


@once_per_subject
def _last_ready(log: Log) -> dict[str, int]:
    """Return the last line of each file that says that a server is ready."""
    return {end.place.file: end.place.line for end in remarks(log, "finished") if _READY.search(end.text)}


def worked_after(log: Log, remark: Remark) -> bool:
    """Return True if the program worked on after a line; once is enough after a warning that reports no hang."""
    is_mild = "graded" in remark.values and not _HANGS.search(remark.text)
    return went_on_after(log, remark.place, after=1 if is_mild else RECENT)


def is_end_of_stall(log: Log, event: Event) -> bool:
    """Return True for Horovod's stall where a training step follows: no rank gets to one without all others."""
    is_stall = "waiting for remainder of ranks" in event.text or event.text.startswith("Stalled ranks:")
    return is_stall and any(
        words.last.file == event.place.file
        and words.last.line > event.place.line
        and _STEP.search(words.last_text) is not None
        for words in log.words
    )


def _was_left_in_order(log: Log, place: LogPosition) -> bool:
    """Return True if a communicator was destroyed later, and no process raised an exception or ended with an error."""
    destroyed = False
    for group in _groups_of_orderly_processes(log):
        if group.place.file == place.file and group.place.line > place.line:
            destroyed = group.stage == "destroy"
    return destroyed


@once_per_subject
def _groups_of_orderly_processes(log: Log) -> tuple[CommInit, ...]:
    """Return what the log says of communicators; nothing if a process raised an exception or ended with an error."""
    for event in log.events:
        if isinstance(event, PythonException) or (isinstance(event, WorkerExit) and event.exit_code):
            return ()
    return tuple(event for event in log.events if isinstance(event, CommInit))


def is_overcome(log: Log, event: Event) -> bool:
    """Return True if the job went on after the event, and the event is nothing that stays true all the same."""
    if isinstance(event, Remark) and (event.topic in _LASTING or event.values.get("ends")):
        again = event.topic == "host-oom" or event.values.get("cause") == "host-oom-kill"
        again = again or event.values.get("group") == "kubernetes-ended"
        is_back = event.values.get("group") == "slurm-ended" and _began_after_preemption(log, event.place)
        return went_on_after(log, event.place) and (
            is_back or (again and _ended_well_after(log, event.place))
        )
    if is_last_of_its_host(log, event.place):
        return False
    return went_on_after(log, event.place) or is_end_of_stall(log, event)


def is_last_of_its_host(log: Log, place: LogPosition) -> bool:
    """Return True for a line after which the launcher of its host gave up and that host said nothing more.

    What other hosts did later says nothing of it: they may have run a job of their own each.
    """
    return place.line <= _given_up(log).get((place.host, place.file), 0)


@once_per_subject
def _given_up(log: Log) -> dict[tuple[str | None, str], int]:
    """Return by host and file the line at which the launcher there gave up, where nothing of that host follows."""
    given_up: dict[tuple[str | None, str], int] = {}
    for end in log.events:
        if isinstance(end, PythonException) and end.kind == "launcher" and end.place.host is not None:
            key = (end.place.host, end.place.file)
            given_up[key] = max(end.place.line, given_up.get(key, 0))
    for words in log.words:
        if words.last.line > given_up.get((words.last.host, words.last.file), words.last.line):
            del given_up[words.last.host, words.last.file]
    return given_up


def _began_after_preemption(log: Log, place: LogPosition) -> bool:
    """Return True if Slurm ended the job for another one only, and the program began again after the line."""
    ends = [end.values.get("why", "") for end in remarks(log, "scheduler-end")]
    begun = [start.place for start in remarks(log, "rank-beyond", "launched", "nccl-banner")]
    begun += [event.place for event in log.events if isinstance(event, CommInit) and event.stage == "start"]
    return (
        bool(ends)
        and all("PREEMPT" in why for why in ends)
        and any(start.file == place.file and start.line > place.line for start in begun)
    )


def _ended_well_after(log: Log, place: LogPosition) -> bool:
    """Return True if the same file says later that the job finished: what was killed was started again."""
    return _last_ends(log).get(place.file, 0) > place.line


@once_per_subject
def _last_ends(log: Log) -> dict[str, int]:
    """Return the last line of each file that says that something finished."""
    last: dict[str, int] = {}
    for end in (*remarks(log, "finished"), *successes(log)):
        last[end.place.file] = max(last.get(end.place.file, 0), end.place.line)
    return last


@once_per_subject
def ends_of_job(log: Log) -> tuple[Remark, ...]:
    """Return the lines that say that the job finished, without what a program did before NCCL began: a download."""
    begun: dict[str, int] = {}
    for process in log.processes:
        first = begun.get(process.place.file, process.place.line)
        begun[process.place.file] = min(first, process.place.line)
    return tuple(
        end
        for end in remarks(log, "finished")
        if not _TYPED.match(end.text)
        and not (is_of_a_part(end) and end.place.line < begun.get(end.place.file, 0))
        and not _BEGINS.search(end.text)
        and not _is_of_another_try(log, end)
    )


def _is_of_another_try(log: Log, end: Remark) -> bool:
    """Return True if a program ended well with a setting that was tried after it had gone wrong without it."""
    return _first_attempts(log).get(end.place.file, end.place.line) < end.place.line


@once_per_subject
def _first_attempts(log: Log) -> dict[str, int]:
    """Return the first line of each file at which a setting was tried after something had gone wrong."""
    first_trouble: dict[str, int] = {}
    for word in remarks(log, "trouble-word"):
        first_trouble[word.place.file] = min(
            first_trouble.get(word.place.file, word.place.line), word.place.line
        )
    first: dict[str, int] = {}
    for attempt in remarks(log, "workaround"):
        file, line = attempt.place.file, attempt.place.line
        if first_trouble.get(file, line) < line:
            first[file] = min(first.get(file, line), line)
    return first


@once_per_subject
def successes(log: Log) -> tuple[Remark, ...]:
    """Return the words of a launcher or scheduler that the job succeeded, in the order of the log."""
    found = (*remarks(log, "succeeded"), *rows_of_success(log))
    order = {id(event): number for number, event in enumerate(log.events)}
    return tuple(sorted(found, key=lambda remark: order[id(remark)]))


@once_per_subject
def launched(log: Log) -> tuple[Remark, ...]:
    """Return the starts of programs; `# all_gather_perf` is a line of nccl-tests itself."""
    return tuple(line for line in remarks(log, "launched") if not line.text.startswith("# "))


def closes_the_job(end: Remark) -> bool:
    """Return True if no more of the job comes after the line: no server goes on, and it is no step of many."""
    return not is_of_a_part(end) and not _SERVES.search(end.text) and not _ONE_OF_MANY.search(end.text)


def is_of_a_part(end: Remark) -> bool:
    """Return True if a line may tell of a part of the job, as `Done!` does."""
    return not _WHOLE.search(end.text)


def began_again(log: Log, end: Remark) -> bool:
    """Return True if a person started a program at a shell's prompt after one had finished."""
    return any(
        launch.place.file == end.place.file and launch.place.line > end.place.line
        for launch in remarks(log, "launched")
    )


@once_per_subject
def remarks(log: Log, *topics: str) -> tuple[Remark, ...]:
    """Return the lines on any of the topics."""
    return tuple(event for event in log.events if isinstance(event, Remark) and event.topic in topics)


def slowness(log: Log) -> tuple[Remark, ...]:
    """Return what says that a job was slow: a person's word, or a measurement of GPUs that adapters can read."""
    unknown_gpus = not remarks(log, "rank-place")
    measured = remarks(log, "bandwidth-measured") if unknown_gpus or remarks(log, "direct-gpu") else ()
    return remarks(log, "slow-word", "module-asked") + measured


def unopened(log: Log) -> tuple[Remark, ...]:
    """Return NCCL's warnings of an RDMA device that is there and that no process of the host could open.

    None for a job of one node, by torchrun's own word or by its communicators: it needs no adapter.
    """
    if remarks(log, "one-node") or _is_on_one_host(log):
        return ()
    opened = {process.host for process in log.processes if process.devices}
    return tuple(
        remark
        for remark in remarks(log, "nccl-warn")
        if remark.values.get("group") == "ib-open" and remark.place.host not in opened
    )


def _is_on_one_host(log: Log) -> bool:
    """Return True if all ranks of the largest communicator are here, and on one host."""
    ranks = max((process.ranks or 0 for process in log.processes), default=0)
    there = {(process.host, process.rank) for process in log.processes if process.rank is not None}
    return ranks > 1 and len(there) == ranks and len({host for host, _ in there}) == 1


def destroyed(log: Log) -> tuple[CommInit, ...]:
    """Return the communicators that a rank gave up in order."""
    return tuple(event for event in log.events if isinstance(event, CommInit) and event.stage == "destroy")


def shows_work(log: Log) -> bool:
    """Return True if the log shows that the program worked or finished, or holds nothing but NCCL's own lines."""
    return (
        bool(ends_of_job(log) or successes(log))
        or any(remark.values.get("shows") == "work" for remark in remarks(log, "harmless"))
        or bool(log.works)
        or bool(destroyed(log))
        or (
            not log.words
            and any(isinstance(event, CommInit) and event.stage == "complete" for event in log.events)
        )
    )


@once_per_subject
def measured_apart(log: Log) -> tuple[Remark, ...]:
    """Return lines of nccl-tests in which two processes that were started together say that they are the same rank.

    Its first process prints the ranks of all before any result (src/common.cu, MPI_Gather): a second table with other
    processes is that of one that knows nothing of the first. A result, or what went wrong, ends a run.
    """
    of_rank: dict[tuple[str, int | None], Remark] = {}
    for event in log.events:
        if not isinstance(event, Remark) or event.topic in _ENDS_OF_A_TEST:
            of_rank.clear()
        elif event.topic == "rank-place" and "pid" in event.values:
            first = of_rank.setdefault((event.place.file, event.place.rank), event)
            if (first.values["pid"], first.place.host) != (event.values["pid"], event.place.host):
                return (first, event)
    return ()
