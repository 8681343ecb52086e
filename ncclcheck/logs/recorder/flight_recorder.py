"""torch's flight recorder dumps: what one rank recorded of its collectives, read from JSON or from a plain pickle.

Source: torch/csrc/distributed/c10d/FlightRecorder.hpp and FlightRecorderDetail.hpp (torch 2.7 to 2.13, version "2.10"),
TraceUtils.h and NCCLUtils.hpp before that. torch 2.2 dumped a bare list of entries with `seq_id`; since 2.3 a dict with
`entries`; `collective_seq_id` and `p2p_seq_id` since 2.4. The file is TORCH_NCCL_DEBUG_INFO_TEMP_FILE (later
TORCH_FR_DUMP_TEMP_FILE) with the rank appended, by default /tmp/nccl_trace_rank_N.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from math import prod
from typing import Any

import msgspec
from msgspec import Struct

from ncclcheck.model.errors import DecodeError
from ncclcheck.model.formats.pickles import read_pickle

LONGEST_DUMP_BYTES = 128 << 20
MOST_ENTRIES = 200_000
MOST_NODES = 4_000_000  # values in a dump, shared ones counted as often as they occur
MOST_DEPTH = 6
KEPT_COMPLETED = 256  # of a group's collectives that are over: those before are compared by nobody
KEPT = 20_000
LONGEST_TEXT = 200
_MOST_FRAMES = 200
_MOST_RANKS = 65_536

_JSON_START = re.compile(rb"^(?:\xef\xbb\xbf)?\s*[\[{]")
_NAMES_OF_ENTRIES = (b"profiling_name", b"record_id")
_RANK_IN_NAME = re.compile(r"rank[-_.]?(\d{1,6})(?!\d)", re.IGNORECASE)
_LAST_NUMBER = re.compile(
    r"(?<!\d)(\d{1,6})(?:\.(?:json|pkl|pickle|pt|bin|dump|trace|gz|txt))*$", re.IGNORECASE
)
_NUMBER = re.compile(r"\d{1,6}")
_P2P = re.compile(r"^(?:send|recv)\b")


class Recorded(Struct, frozen=True):
    """One operation of a group that a rank entered. Sizes are numbers of elements, of all tensors together.

    `is_over`: completed, as far as the recorder knows; Gloo's entries never do. `where`: the frame of the program.
    """

    sequence: int
    operation: str
    elements_in: int | None
    elements_out: int | None
    dtypes: tuple[str, ...]
    state: str
    timeout_ms: int | None = None
    where: str = ""

    @property
    def is_over(self) -> bool:
        """True if the rank saw it complete."""
        return self.state == "completed"


class Group(Struct, frozen=True):
    """A process group in one rank's dump: its operations by sequence number, and how far it had come.

    `members`: None where the dump does not tell. `last`: the last sequence number that the rank entered; 0 for none.
    """

    name: str
    description: str
    backend: str
    members: tuple[int, ...] | None
    last: int
    collectives: tuple[Recorded, ...]


class Dump(Struct, frozen=True):
    """One rank's dump. `rank` None: neither the file's name nor the dump gives it. `newest_ns`: its last time stamp."""

    file: str
    rank: int | None
    host: str
    version: str
    groups: tuple[Group, ...]
    newest_ns: int


class _Entry(Struct):
    """What is read of an entry; the rest of it is left aside."""

    profiling_name: str
    record_id: int = 0
    pg_id: int | str = 0
    pg_name: str | None = None
    process_group: Any = None
    collective_seq_id: int | None = None
    seq_id: int | None = None
    op_id: int = 0
    input_sizes: list[list[int]] = []
    output_sizes: list[list[int]] = []
    input_dtypes: list[str] = []
    output_dtypes: list[str] = []
    state: str = "scheduled"
    time_created_ns: int | float = 0
    timeout_ms: int | float | None = None
    is_p2p: bool = False


class _Whole(Struct):
    """A dump as it is written since torch 2.3."""

    entries: list[_Entry] = []
    version: str = ""
    rank: int | None = None
    host_name: str = ""
    pg_config: dict[str, dict[str, Any]] = {}
    pg_status: dict[str, dict[str, Any]] = {}


def looks_like_a_dump(start: bytes) -> bool:
    """Return True if a file with this first megabyte is a flight recorder dump, whatever its name."""
    if start[:1] == b"\x80" and start[1:2] <= b"\x05":
        return b"pg_config" in start or all(name in start for name in _NAMES_OF_ENTRIES)
    if not _JSON_START.match(start):
        return False
    quoted = [b'"' + name + b'"' for name in _NAMES_OF_ENTRIES]
    return all(name in start for name in quoted) or (b'"pg_config"' in start and b'"pg_status"' in start)


def read_dump(data: bytes, file: str) -> Dump:
    """Return the dump in `data`. Raises DecodeError if it is damaged, cut, of another shape or not plain values."""
    if len(data) > LONGEST_DUMP_BYTES:
        raise DecodeError(f"a dump of more than {LONGEST_DUMP_BYTES >> 20} MiB")
    frames: dict[int, str] = {}
    try:
        if data[:1] == b"\x80":
            plain = read_pickle(data)
            whole = _converted(plain)
            frames = dict(_frames(plain))
        else:
            is_list = data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"["
            text = data.removeprefix(b"\xef\xbb\xbf")
            whole = (
                _Whole(entries=msgspec.json.decode(text, type=list[_Entry]))
                if is_list
                else msgspec.json.decode(text, type=_Whole, strict=False)
            )
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DecodeError(f"a damaged flight recorder dump: {error}") from error
    if len(whole.entries) > MOST_ENTRIES:
        raise DecodeError(f"a flight recorder dump of more than {MOST_ENTRIES} entries")
    return _reduced(whole, frames, file)


def _converted(plain: object) -> _Whole:
    """Return the parts that are read, from plain containers that may be shared beyond measure or hold themselves."""
    if isinstance(plain, list):
        plain = {"entries": plain}
    if not isinstance(plain, dict):
        raise DecodeError("a pickle that is no flight recorder dump")
    fields = {name: plain[name] for name in _Whole.__struct_fields__ if name in plain}
    entries = fields.get("entries")
    if isinstance(entries, list):
        if len(entries) > MOST_ENTRIES:
            raise DecodeError(f"a flight recorder dump of more than {MOST_ENTRIES} entries")
        fields["entries"] = [
            {name: entry[name] for name in _Entry.__struct_fields__ if name in entry}
            if isinstance(entry, dict)
            else entry
            for entry in entries
        ]
    _count(fields, MOST_NODES, MOST_DEPTH)
    return msgspec.convert(fields, _Whole, strict=False)


def _count(value: object, left: int, depth: int) -> int:
    """How many of `left` steps remain after all values below `value` were counted. Raises DecodeError for none."""
    if left <= 0 or depth < 0:
        raise DecodeError("a flight recorder dump that is nested or shared beyond any real one")
    left -= 1
    inner: Iterable[object] = ()
    if isinstance(value, dict):
        inner = value.values()
    elif isinstance(value, list | tuple):
        inner = value
    for item in inner:
        left = _count(item, left, depth - 1) if isinstance(item, dict | list | tuple) else left - 1
    return left


def _frames(plain: object) -> Iterator[tuple[int, str]]:
    """Yield the frame of the program itself at each entry that has a stack trace: the innermost that is not torch's."""
    entries = plain.get("entries") if isinstance(plain, dict) else plain
    for number, entry in enumerate(entries if isinstance(entries, list) else ()):
        frames = entry.get("frames") if isinstance(entry, dict) else None
        for frame in frames[:_MOST_FRAMES] if isinstance(frames, list) else ():
            if not isinstance(frame, dict):
                continue
            file, line, name = (frame.get(key) for key in ("filename", "line", "name"))
            if isinstance(file, str) and "/torch/" not in file and not file.startswith("<"):
                yield number, f"{file}:{line} in {name}"[:LONGEST_TEXT]
                break


def _reduced(whole: _Whole, frames: Mapping[int, str], file: str) -> Dump:
    by_group: dict[tuple[str, str], list[tuple[int, _Entry]]] = {}
    for number, entry in enumerate(whole.entries):
        by_group.setdefault(_group_of(entry), []).append((number, entry))
    groups = [_group(name, entries, whole, frames) for name, entries in by_group.items()]
    known = {group.name for group in groups}
    for key, config in whole.pg_config.items():
        name = str(config.get("name") or key)
        members = _ranks(config.get("ranks"))
        if name and name not in known and members:  # a group that this rank never used
            groups.append(
                Group(name[:LONGEST_TEXT], str(config.get("desc", ""))[:LONGEST_TEXT], "", members, 0, ())
            )
    return Dump(
        file=file,
        rank=whole.rank if whole.rank is not None and 0 <= whole.rank < _MOST_RANKS else rank_in_name(file),
        host="" if whole.host_name.startswith("host_rank") else whole.host_name[:LONGEST_TEXT],
        version=whole.version[:LONGEST_TEXT],
        groups=tuple(groups),
        newest_ns=max((int(entry.time_created_ns) for entry in whole.entries), default=0),
    )


def rank_in_name(file: str) -> int | None:
    """Return the rank that torch appended to the file's name; None where there is no number at its end."""
    name = file.replace("\\", "/").rpartition("/")[2]
    match = _RANK_IN_NAME.search(name) or _LAST_NUMBER.search(name)
    return int(match[1]) if match else None


def _group_of(entry: _Entry) -> tuple[str, str]:
    """Name and description of the group: a pair since torch 2.4, a name in 2.3, only a number in 2.2."""
    group = entry.process_group
    if isinstance(group, list | tuple) and group:
        description = group[1] if len(group) > 1 else ""
        return str(group[0])[:LONGEST_TEXT], str(description)[:LONGEST_TEXT]
    name = group if isinstance(group, str) else entry.pg_name
    return (str(entry.pg_id) if name is None else name)[:LONGEST_TEXT], ""


def _group(
    name: tuple[str, str], entries: list[tuple[int, _Entry]], whole: _Whole, frames: Mapping[int, str]
) -> Group:
    collectives = [(number, entry) for number, entry in entries if not _is_p2p(entry)]
    recorded = [_recorded(entry, frames.get(number, "")) for number, entry in collectives]
    last = max((collective.sequence for collective in recorded), default=0)
    if len(collectives) == len(entries):  # with sends and receives, the status counts those too
        ids = {str(entry.pg_id) for _, entry in entries}
        last = max(
            [
                last,
                *(
                    _whole_number(whole.pg_status.get(identifier, {}).get("last_enqueued_collective"))
                    for identifier in ids
                ),
            ]
        )
    return Group(
        name=name[0],
        description=name[1],
        backend=entries[0][1].profiling_name.partition(":")[0][:LONGEST_TEXT] if entries else "",
        members=_members(name, whole.pg_config),
        last=last,
        collectives=tuple(_worth_keeping(recorded)),
    )


def _worth_keeping(recorded: list[Recorded]) -> Iterator[Recorded]:
    """All that are not over and the last ones that are, in order, one of each sequence number."""
    ordered = sorted(
        {collective.sequence: collective for collective in reversed(recorded)}.values(),
        key=lambda collective: collective.sequence,
    )
    over = [collective.sequence for collective in ordered if collective.is_over]
    first = over[-KEPT_COMPLETED] if len(over) > KEPT_COMPLETED else 0
    yield from [
        collective for collective in ordered if not collective.is_over or collective.sequence >= first
    ][-KEPT:]


def _recorded(entry: _Entry, where: str) -> Recorded:
    sequence = entry.collective_seq_id if entry.collective_seq_id is not None else entry.seq_id
    return Recorded(
        sequence=sequence or 0,
        operation=operation_of(entry.profiling_name),
        elements_in=_elements(entry.input_sizes),
        elements_out=_elements(entry.output_sizes),
        dtypes=tuple(dict.fromkeys(entry.input_dtypes))[:4],
        state=entry.state[:LONGEST_TEXT],
        timeout_ms=int(entry.timeout_ms) if entry.timeout_ms is not None else None,
        where=where,
    )


# profiling names (ProcessGroupNCCL.cpp, ProcessGroupGloo.cpp) -> the OpType that torch's logs say (Work.hpp).
_OPERATIONS = {
    "all_reduce": "ALLREDUCE", "all_reduce_barrier": "ALLREDUCE", "barrier": "BARRIER",
    "allreduce_coalesced": "ALLREDUCE_COALESCED", "all_reduce_sparse": "ALLREDUCE_SPARSE",
    "broadcast": "BROADCAST", "_broadcast_oop": "BROADCAST", "reduce": "REDUCE", "_reduce_oop": "REDUCE",
    "all_gather": "ALLGATHER", "_all_gather_base": "ALLGATHER_BASE", "all_gather_single": "ALLGATHER_BASE",
    "all_gather_into_tensor_coalesced": "ALLGATHER_COALESCED", "reduce_scatter": "REDUCE_SCATTER",
    "_reduce_scatter_base": "REDUCE_SCATTER_BASE", "reduce_scatter_single": "REDUCE_SCATTER_BASE",
    "reduce_scatter_tensor_coalesced": "REDUCE_SCATTER_COALESCED", "gather": "GATHER", "scatter": "SCATTER",
    "all_to_all": "ALLTOALL", "all_to_all_single": "ALLTOALL", "all_to_all_v_single": "ALLTOALL",
    "coalesced": "COALESCED",
}  # fmt: skip


def operation_of(profiling_name: str) -> str:
    """Return the operation as torch's logs call it: `nccl:all_reduce` is ALLREDUCE."""
    name = profiling_name.rpartition(":")[2].split(" ")[0]
    return _OPERATIONS.get(name, name.upper().strip("_"))[:LONGEST_TEXT]


def _is_p2p(entry: _Entry) -> bool:
    return entry.is_p2p or _P2P.match(entry.profiling_name.rpartition(":")[2]) is not None


def _elements(sizes: list[list[int]]) -> int | None:
    """Elements of all tensors together; None where there is no tensor."""
    return sum(prod(size[:16]) for size in sizes) if sizes else None


def _members(name: tuple[str, str], config: Mapping[str, Mapping[str, Any]]) -> tuple[int, ...] | None:
    """Return the ranks of the group; Gloo's configuration of the default group has no name."""
    found = config.get(name[0])
    if found is None and (name[0] == "0" or name[1] == "default_pg"):
        found = config.get("")
    return _ranks(found.get("ranks")) if found else None


def _ranks(text: object) -> tuple[int, ...] | None:
    """`[0, 1, 2]`, as text or as a list; without names of ranks, None."""
    if isinstance(text, list | tuple):
        ranks = [
            number
            for number in text[:_MOST_RANKS]
            if isinstance(number, int) and not isinstance(number, bool)
        ]
    else:
        ranks = [int(match[0]) for match in _NUMBER.finditer(text)] if isinstance(text, str) else []
    return tuple(sorted(set(ranks[:_MOST_RANKS]))) or None


def _whole_number(value: object) -> int:
    """Return the number of a status, which JSON writes as text; 0 where there is none."""
    if isinstance(value, str):
        return int(value) if value.isdecimal() and len(value) <= 18 else 0  # noqa: PLR2004
    return value if isinstance(value, int) and value > 0 else 0
