"""What several causes ask a log. All functions are pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ncclcheck.checks.logs._works import (
    began_again,
    ends_of_job,
    is_end_of_stall,
    is_of_a_part,
    is_overcome,
    shows_work,
    successes,
    worked_after,
)
from ncclcheck.checks.logs._works import (
    remarks as remarks,
)
from ncclcheck.checks.subject_cache import once_per_subject
from ncclcheck.logs.patterns.topic_tables import ALL_TOPICS
from ncclcheck.model.events import (
    AnyEvent,
    CollectiveTimeout,
    CommInit,
    ConnectFailure,
    Event,
    GroupStatus,
    Layer,
    Log,
    LogPosition,
    Process,
    PythonException,
    RankBehind,
    RankDiffers,
    RankWaits,
    Registered,
    Remark,
    WorkerExit,
)
from ncclcheck.model.formats.addresses import is_loopback

_MOST_RANKS_NAMED = 1
# Topics that a reader gives, not a pattern; and those of the tables that do not say that the job failed.
_NOT_ALARMING = frozenset(
    {
        "harmless",
        "used",
        "nccl-banner",
        "rank-place",
        "nccl-warn",
        "exception-mentioned",
        "error-line",
        "trouble-word",
    }
).union(topic.name for topic in ALL_TOPICS if not topic.alarms)


_GONE = ("torch-store-down", "torch-ipc-producer")  # groups of the tables
_FALLBACK = "using point-to-point network instead"
_NCCL_VERSION = re.compile(r"NCCL version (?P<version>\d{1,3}\.\d{1,3}\.\d{1,3})")
# After these no word of the job that it finished counts; all others a program may survive (a fallback, a retry).
_ENDINGS = frozenset(topic.name for topic in ALL_TOPICS if topic.ends_the_job)


@once_per_subject
def failures(
    log: Log, layer: Layer | None = None, *, established: bool = False
) -> tuple[ConnectFailure, ...]:
    """Return the connections that failed or, if `established`, that broke because nobody answered."""
    return tuple(
        event
        for event in log.events
        if isinstance(event, ConnectFailure)
        and event.established is established
        and layer in (None, event.layer)
    )


@once_per_subject
def timeouts(log: Log) -> tuple[CollectiveTimeout, ...]:
    """Return the collectives that timed out."""
    return tuple(event for event in log.events if isinstance(event, CollectiveTimeout))


@once_per_subject
def statuses(log: Log) -> tuple[GroupStatus, ...]:
    """How far groups had come."""
    return tuple(event for event in log.events if isinstance(event, GroupStatus))


def behind(log: Log) -> tuple[RankBehind, ...]:
    """Ranks that others wait for, as flight recorder dumps or NCCL RAS tell."""
    return tuple(event for event in log.events if isinstance(event, RankBehind))


def differing(log: Log) -> tuple[RankDiffers, ...]:
    """Ranks in another collective than most, as flight recorder dumps or NCCL RAS tell."""
    return tuple(event for event in log.events if isinstance(event, RankDiffers))


def waits(log: Log) -> tuple[RankWaits, ...]:
    """Ranks that were in a collective when they were asked."""
    return tuple(event for event in log.events if isinstance(event, RankWaits))


def registered(log: Log) -> tuple[Registered, ...]:
    """Return how many workers registered at the store."""
    return tuple(event for event in log.events if isinstance(event, Registered))


@once_per_subject
def exceptions(log: Log, *kinds: str) -> tuple[PythonException, ...]:
    """Exceptions of those kinds; of a worker's own where none is named."""
    chosen = kinds or ("ordinary",)
    return tuple(event for event in log.events if isinstance(event, PythonException) and event.kind in chosen)


@once_per_subject
def exits(log: Log) -> tuple[WorkerExit, ...]:
    """Workers' ends as launchers tell them, without those that ended well."""
    return tuple(event for event in log.events if isinstance(event, WorkerExit) and event.exit_code != 0)


@once_per_subject
def alarms(log: Log) -> tuple[Event, ...]:
    """Everything that says that the job failed, as opposed to what only sounds so, or what it got over."""
    return tuple(event for event in all_alarms(log) if not is_overcome(log, event))


@once_per_subject
def all_alarms(log: Log) -> tuple[Event, ...]:
    """Return the alarms, with those after which the job went on."""
    found = tuple(event for event in log.events if is_alarm(event) and not _closed_after_the_end(log, event))
    return tuple(event for event in found if not _is_plugin(event)) if fell_back(log) else found


def _closed_after_the_end(log: Log, event: Event) -> bool:
    """Return True if the line only says that the store, or a process, is gone, below one that the job finished."""
    if not isinstance(event, Remark) or event.values.get("group") not in _GONE:
        return False
    return any(
        end.place.file == event.place.file and end.place.line < event.place.line and "HTTP/1" not in end.text
        for end in remarks(log, "finished")
    )


@once_per_subject
def fell_back(log: Log) -> bool:
    """Return True if NCCL says that it goes on without the plug-in, and a communicator was complete after that."""
    fallbacks = [remark for remark in remarks(log, "nccl-warn") if _FALLBACK in remark.text]
    complete = [event for event in log.events if isinstance(event, CommInit) and event.stage != "start"]
    return bool(fallbacks) and any(event.place.line > fallbacks[0].place.line for event in complete)


def _is_plugin(event: Event) -> bool:
    return isinstance(event, Remark) and (
        event.topic == "plugin-sharp" or event.values.get("cause") == "net-plugin-config"
    )


def troubles(log: Log) -> tuple[Event, ...]:
    """Return the alarms; in a job without any that did not finish, NCCL's warnings and closed connections."""
    found = alarms(log) or after_the_end(
        log, "nccl-warn", "closed-by-peer", "crash", "generic-nccl", "exception-mentioned", "error-line"
    )
    if found or shows_work(log):
        return found or after_the_end(log, "trouble-word")
    return after_the_end(log, "trouble-word", "name-resolution") or failures(log)


def after_the_end(log: Log, *topics: str) -> tuple[Remark, ...]:
    """Return the lines on the topics after which the job did not finish, without harmless ones."""
    ends: dict[str, int] = {}
    for end in ends_of_job(log):
        ends[end.place.file] = max(end.place.line, ends.get(end.place.file, 0))
    last = max(ends.values(), default=0) if len(log.files) > 1 else 0
    normal = {(remark.place.file, remark.place.line) for remark in remarks(log, "harmless")}
    return tuple(
        remark
        for remark in remarks(log, *topics)
        if remark.values.get("kind") != "harmless"
        and (remark.place.file, remark.place.line) not in normal
        and remark.place.line > ends.get(remark.place.file, last)
        and not worked_after(log, remark)
        and not is_end_of_stall(log, remark)
    )


def is_alarm(event: AnyEvent) -> bool:
    """Return True if the line says that something of the job failed for good."""
    if isinstance(event, Remark):
        return event.topic not in _NOT_ALARMING
    if isinstance(event, ConnectFailure):
        return event.final
    if isinstance(event, PythonException):
        return event.kind != "ignored"
    if isinstance(event, WorkerExit):
        return event.exit_code != 0
    if isinstance(event, Registered):
        return event.joined != event.expected
    return isinstance(event, CollectiveTimeout | GroupStatus | RankWaits | RankBehind | RankDiffers)


def finished_well(log: Log) -> bool:
    """Return True if the log says that the job finished, and nothing in it that it failed.

    What a program can survive (an adapter that was asked for in vain, an old line of the kernel) does not count where
    the job says afterwards that it finished, and nothing ended with an error.
    """
    if _succeeded(log) or _got_over_all(log):
        return True
    ends = ends_of_job(log)
    found = _of_last_attempt(log)
    if not ends or not found:
        again = remarks(log, "requeued")[-1:]
        weak = ("trouble-word",) if ends and (is_of_a_part(ends[-1]) or began_again(log, ends[-1])) else ()
        if not found and after_the_end(log, "error-line", "exception-mentioned", *weak):
            return False
        return bool(ends) and not (again and ends[-1].place.line < again[0].place.line)
    if not all(_is_survivable(event, ends) for event in found):
        return False
    order = {id(event): number for number, event in enumerate(log.events)}
    last = max(order[id(event)] for event in found)
    return any(order[id(end)] > last and not is_of_a_part(end) for end in ends)


def _got_over_all(log: Log) -> bool:
    """Return True if something went wrong, the job went on after all of it, and nothing went wrong later."""
    if not all_alarms(log) or alarms(log):
        return False
    return not after_the_end(
        log, "nccl-warn", "closed-by-peer", "crash", "generic-nccl", "error-line", "trouble-word"
    )


def _succeeded(log: Log) -> bool:
    """Return True if the launcher or scheduler says that the job succeeded, after all that went wrong before."""
    passed = successes(log)
    if not passed or remarks(log, "wrong-results"):
        return False
    order = {id(event): number for number, event in enumerate(log.events)}
    return order[id(passed[-1])] > max((order[id(event)] for event in alarms(log)), default=-1)


def _of_last_attempt(log: Log) -> tuple[Event, ...]:
    """Return the alarms after the scheduler put the job, which it had ended itself, into its queue again."""
    found = alarms(log)
    again = remarks(log, "requeued")
    ended = remarks(log, "scheduler-end", "previous-attempt")
    if not again or not ended or ended[-1].place.line > again[-1].place.line or len(log.files) > 1:
        return found
    return tuple(event for event in found if event.place.line > again[-1].place.line)


def _is_survivable(event: Event, ends: Iterable[Remark]) -> bool:
    """Return True if a program can go on after it: an exception if it has no traceback or its own rank finished."""
    if isinstance(event, PythonException):
        there = event.place
        finished = any(
            (end.place.file, end.place.rank, end.place.host) == (there.file, there.rank, there.host)
            for end in ends
        )
        return event.kind in ("ordinary", "after-effect") and (finished or not event.where)
    if isinstance(event, Remark):
        return event.topic not in _ENDINGS and not event.values.get("ends")
    return isinstance(event, ConnectFailure)


def world_size(log: Log) -> int | None:
    """Ranks of the largest communicator or registration; None where it is unknown."""
    sizes = [process.ranks for process in log.processes if process.ranks] + [
        registration.expected for registration in registered(log)
    ]
    sizes += [int(remark.values["ranks"]) for remark in remarks(log, "told-size")]
    return max(sizes, default=None)


def silent_ranks(log: Log) -> tuple[int, ...]:
    """Ranks of the job of which the log has not one line, where the job's size is known and some ranks are heard."""
    size = world_size(log)
    heard = {event.place.rank for event in log.events} | {process.rank for process in log.processes}
    heard |= {place.rank for word in log.words for place in (word.first, word.last)}
    heard.discard(None)
    if size is None or not heard or size > 65536:  # noqa: PLR2004 (more than any job has)
        return ()
    return tuple(rank for rank in range(size) if rank not in heard)


def versions_of(log: Log, library: str) -> tuple[str, ...]:
    """Return the versions of `nccl` or `torch` that the log shows: banners, processes, torch's exceptions."""
    found = [process.nccl_version for process in log.processes] if library == "nccl" else []
    for event in log.events:
        if isinstance(event, Remark):
            found.append(event.values.get(library, ""))
        if library == "nccl" and (match := _NCCL_VERSION.search(event.text)):
            found.append(match["version"])
    return tuple(dict.fromkeys(version for version in found if version))


def settings(log: Log, name: str) -> dict[str, list[Process]]:
    """Value -> processes that had the variable set to it, as NCCL said."""
    found: dict[str, list[Process]] = {}
    for process in log.processes:
        if name in process.settings:
            found.setdefault(process.settings[name], []).append(process)
    return found


def hosts_of(log: Log) -> tuple[str, ...]:
    """Every host that the log names as a speaker."""
    names = [process.host for process in log.processes] + [event.place.host or "" for event in log.events]
    names += [place.host or "" for word in log.words for place in (word.first, word.last)]
    return tuple(dict.fromkeys(name for name in names if name))


def hosts_of_address(log: Log, address: str) -> tuple[str, ...]:
    """Return the hosts whose NCCL said that it uses that address."""
    return tuple(dict.fromkeys(process.host for process in log.processes if process.address == address))


def both_ends(log: Log, failed: Sequence[ConnectFailure]) -> tuple[str, ...]:
    """Return the peer of connections that all lead to one address, and who lost it; nobody where they are several."""
    addresses = {failure.address for failure in failed}
    if len(addresses) != 1 or not (address := addresses.pop())[:1].isdigit():
        return ()
    peer = hosts_of_address(log, address)[:1] or (address,)
    hosts = [host for host in culprits(log, [failed[0].place]) if not host.startswith("rank ")]
    return tuple(dict.fromkeys((*peer, *hosts)))


def path_ends(log: Log, failed: Sequence[ConnectFailure]) -> tuple[str, ...]:
    """Return the target that connections to one place did not reach, and the only caller; of several, the callers.

    Where others reached it (some of the workers registered), only who did not is named.
    """
    tried = culprits(log, [failure.place for failure in failed])
    hosts = tuple(name for name in tried if not name.startswith("rank "))
    addresses = {failure.address for failure in failed}
    if len(addresses) != 1 or not is_place(address := addresses.pop()):
        return tried
    if any(1 < registration.joined < registration.expected for registration in registered(log)):
        return tried
    known = hosts_of_address(log, address)[:1] or (address,)
    return known if len(hosts) > 1 else tuple(dict.fromkeys((*known, *(hosts or tried[:1]))))


def is_place(address: str) -> bool:
    """Return True for an address or a name of a machine; False for words where the log has none."""
    return bool(address) and " " not in address and "_" not in address


def culprits(log: Log, places: Iterable[LogPosition]) -> tuple[str, ...]:
    """Hosts as in the log where they are known, and `rank N` for a single rank or where no host is known."""
    spoken = list(places)
    ranks = tuple(dict.fromkeys(place.rank for place in spoken if place.rank is not None))
    hosts = tuple(
        dict.fromkeys(
            host
            for place in spoken
            if (
                host := place.host or (log.hosts_of_ranks.get(place.rank) if place.rank is not None else None)
            )
        )
    )
    named = tuple(f"rank {rank}" for rank in sorted(ranks))
    if named:
        hosts = tuple(host for host in hosts if not is_local(host))  # which says nothing about where
    if not hosts:
        return named
    return hosts + (named if len(ranks) <= _MOST_RANKS_NAMED else ())


def of_processes(processes: Sequence[Process]) -> tuple[str, ...]:
    """Return the hosts of the processes."""
    return tuple(dict.fromkeys(process.host for process in processes))


def is_local(address: str) -> bool:
    """Return True for 127.x, ::1, and the name localhost."""
    if address.lower() in ("localhost", "localhost.localdomain", "ip6-localhost"):
        return True
    try:
        return is_loopback(address)
    except ValueError:  # a name
        return False


def heads(texts: Iterable[str], limit: int = 3) -> str:
    """Return a few of the texts, for a sentence."""
    chosen = list(dict.fromkeys(texts))
    more = f" and {len(chosen) - limit} more" if len(chosen) > limit else ""
    return ", ".join(chosen[:limit]) + more


def matches(pattern: str, events: Iterable[Event]) -> list[Event]:
    """Return the events whose line has the words."""
    compiled = re.compile(pattern, re.IGNORECASE)
    return [event for event in events if compiled.search(event.text)]
