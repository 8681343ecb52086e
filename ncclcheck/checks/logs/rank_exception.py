"""NC928 rank-exception."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from msgspec.structs import replace

from ncclcheck.checks.logs._causes import Suspect, cause, suspect
from ncclcheck.checks.logs._view import culprits, exceptions, exits, remarks, timeouts
from ncclcheck.logs.patterns.topic_tables import ALL_TOPICS, CLAIMED_BY_MESSAGE
from ncclcheck.model.events import Event, Log, PythonException, Remark
from ncclcheck.model.finding import Fix

CLAIMED = frozenset({CLAIMED_BY_MESSAGE}).union(topic.name for topic in ALL_TOPICS if topic.has_own_cause)

_ABORTED = re.compile(
    r"SIGABRT|Signal 6\b|signal 6\b|\bAborted\b"
)  # the watchdog's way to end: an after-effect

# What a program does wrong itself; a ValueError or RuntimeError may also be its word for a wrong machine.
_OWN_CLASS = re.compile(
    r"(?:Key|Index|Type|Attribute|Name|UnboundLocal|ZeroDivision|Recursion|Syntax|Indentation|JSONDecode|"
    r"UnicodeDecode|FloatingPoint|StopIteration)(?:Error)?$"
)
_OWN_WORDS = re.compile(
    r"\b(?:shapes?|sizes? (?:mismatch|of tensor)|dimensions?|dtype|nan|inf|label|index(?:es)? out of|"
    r"element 0 of tensors|backward|gradient|state_dict|invalid literal|tokeniz\w*)\b",
    re.IGNORECASE,
)

# what torchrun says of a rank that ended by itself
_LOCAL_RANK = re.compile(r"\(exitcode: (?!-)\d{1,3}\) local_rank: (?P<rank>\d{1,6})")
_WITH_STACK = re.compile("Fatal Python error")  # CPython's faulthandler, which prints the stack
# cudaErrorLaunchFailure: a kernel failed; CUDA's own words for it name no other reason (driver_types.h)
_WITHOUT_REASON = re.compile("unspecified launch failure")


@cause(
    "NC928",
    "rank-exception",
    "A rank raised an exception of its own",
    explains=("slow-rank-timeout", "uneven-inputs", "ib-link-or-fabric", "world-size-mismatch"),
    fixes=(
        Fix(
            "fix the exception that this rank raised: look at its traceback, its data and its labels; for "
            "device assertions run again with CUDA_LAUNCH_BLOCKING=1",
            ("CUDA_LAUNCH_BLOCKING=1 TORCH_SHOW_CPP_STACKTRACES=1 ...",),
        ),
    ),
)
def rank_exception(log: Log) -> Iterator[Suspect]:
    """A rank raised an exception or device assertion; the NCCL errors of the other ranks are after-effects.

    ## Why it matters
    The first rank that ends has the error; all others only notice its absence, often many minutes
    later.

    ## How to fix
    Read the traceback of that rank, not those of the others.

    ## Source
    CPython's traceback; torch's errors of peers (DistBackendError, Gloo's `Connection closed by peer`) are not
    counted.
    """
    asserts = remarks(log, "device-assert", "usage-error")
    faults = remarks(log, "cuda-fault")
    ended = remarks(log, "inputs-exhausted")  # StopIteration is how an iterator says so
    own_errors = [
        exception
        for exception in exceptions(log)
        if not CLAIMED.intersection(exception.topics)
        and not (ended and exception.class_name == "StopIteration")
        and not _comes_of_a_timeout(log, exception)
    ]
    crashes = [remark for remark in remarks(log, "crash") if not _ABORTED.search(remark.text)]
    if own_errors or asserts:
        found = (
            sorted([*own_errors, *asserts], key=lambda event: (event.place.file, event.place.line))
            if asserts
            else list(own_errors)
        )
        # torch's watchdog, or the exception of the assertion, repeats it, with the rank
        device_asserts = [error for error in exceptions(log) if asserts and "device-assert" in error.topics]
        same = (*(faults if "CUDA error" in found[0].text else ()), *device_asserts)
        culprit = next((event for event in (*found, *same) if event.place.rank is not None), found[0])
        raised = suspect(
            f"{speaker_text(culprit)} ended with its own error: {what(found[0]).removeprefix('error: ')}. "
            "What the other ranks report follows from that.",
            found,
            hosts=culprits(log, [culprit.place]),
        )
        yield replace(raised, in_doubt=not any(_is_of_the_program(event) for event in found))
    elif faults or crashes:
        fallen = [*faults, *crashes]
        yield suspect(
            f"{speaker_text(fallen[0])} crashed ({fallen[0].text.strip()[:120]}).",
            fallen,
            confidence="likely" if _shows_the_fault(fallen) else "possible",
            hosts=culprits(log, [fallen[0].place]),
            explains=(),
        )


def _shows_the_fault(fallen: Sequence[Remark]) -> bool:
    """Return True if a kernel of one host's program did what it may not, or Python says where it crashed.

    A signal that ended a process says that it crashed, not why: its own code, a library or the machine. Nor does a
    launch failure without a reason, or the same fault on GPUs of several hosts.
    """
    if any(_WITH_STACK.search(event.text) for event in fallen):
        return True
    faults = [event for event in fallen if event.topic == "cuda-fault"]
    hosts = {event.place.host for event in faults}
    return any(not _WITHOUT_REASON.search(event.text) for event in faults) and len(hosts) == 1


def _comes_of_a_timeout(log: Log, exception: PythonException) -> bool:
    """Return True if ranks had timed out before, and one of them may have raised it: its data is incomplete then."""
    late = [timeout.place for timeout in timeouts(log) if timeout.place.file == exception.place.file]
    waited = {place.rank for place in late}
    return (
        bool(late)
        and late[0].line < exception.place.line
        and late[0].host == exception.place.host
        and (
            exception.place.rank in waited or (exception.place.rank is None and not _is_another(log, waited))
        )
    )


def _is_another(log: Log, waited: Collection[int | None]) -> bool:
    """Return True if the launcher says that a rank failed which had not timed out.

    The launcher numbers the ranks of its node, which are the job's ranks on the first node only. If no rank that
    timed out has a higher number than the one that failed, all of them are of the first node.
    """
    local = [match for ended in exits(log) if (match := _LOCAL_RANK.search(ended.text))]
    highest = max((rank for rank in waited if rank is not None), default=0)
    return any(int(match["rank"]) > highest for match in local)


def _is_of_the_program(event: Event) -> bool:
    """Return True if the error is one that programs make themselves, not one that may tell of the machine."""
    if not isinstance(event, PythonException):
        return True  # an assertion on the device
    return bool(_OWN_CLASS.search(event.class_name) or _OWN_WORDS.search(event.message))


def speaker_text(event: Event) -> str:
    """The speaker, to begin a sentence with."""
    return f"Rank {event.place.rank}" if event.place.rank is not None else event.place.host or "A process"


def what(event: Event) -> str:
    """The error in a few words."""
    if isinstance(event, PythonException):
        return f"{event.class_name.rpartition('.')[2]}: {event.message[:160]}".rstrip(": ")
    return event.text.strip()[:160]
