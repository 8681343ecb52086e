"""Which rank and which host a line belongs to: from labels, NCCL's prefixes, launchers' tables and names of files.

A launcher's number is a rank, or a node that starts several ranks; a word before a colon is a host, or just a word.
One line cannot tell, all lines together can.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.logs.lines.prefix import parse
from ncclcheck.logs.lines.raw import Raw, RawWords
from ncclcheck.logs.nccl_lines.nccl_info import Notes
from ncclcheck.logs.timeline import in_order, natural
from ncclcheck.model.events import AnyEvent, Log, LogFile, LogPosition, Process, PythonException, Words

_LABELLED_SHARE = (
    0.6  # of a file's lines with a word before the message: then these words are names, not accidents
)
_DIGITS = re.compile(r"\d+")
_COUNTED = frozenset(  # what programs number too
    {
        "",
        "layer",
        "loss",
        "epoch",
        "step",
        "gpu",
        "cuda",
        "device",
        "fold",
        "shard",
        "part",
        "top",
        "acc",
        "attempt",
    }
)
_LONGEST_WORDS = 400
_SEVERAL_NODES = re.compile(
    r"\b(?:nnodes?|num[_-]?nodes|num_machines|NNODES|SLURM_N?NODES|SLURM_JOB_NUM_NODES)[ =:']{1,3}"
    r"(?:\d{1,4}:)?(?:[2-9]|\d{2,5})\b|"
    r"\b(?:node|machine)[_-]rank[ =:]{1,2}[1-9]|\bsrun\b.{0,80} (?:-N ?|--nodes[ =])(?:[2-9]|\d{2,5})\b"
)  # in a launch line, or in what a launcher says of it
_MOST_USUAL_RANKS = 8  # of one node; a node that has more shows more local numbers too
_FILE_RANK = re.compile(r"(?:^|[^a-z])rank[-_.]?(?P<rank>\d{1,6})(?:\D|$)", re.IGNORECASE)
_NO_HOST_STEM = re.compile(
    r"^(?:rank|std(?:out|err)|log|out|err|slurm|train|job|output|console|nccl|-)?[-_.]?\d*$", re.IGNORECASE
)
_SUFFIX = re.compile(r"\.(?:log|txt|out|err|gz)$", re.IGNORECASE)


class _World(Struct, frozen=True):
    """What all lines together tell about names and numbers."""

    ranks_of_processes: dict[tuple[str, int], int]
    words_are_hosts: frozenset[tuple[str, str]]  # (file, word)
    tasks_are_ranks: bool
    hosts_of_tasks: dict[int, str]
    hosts_of_files: dict[str, str]
    ranks_of_files: dict[str, int]
    locals_are_ranks: bool


def resolve(
    files: tuple[LogFile, ...],
    events: Sequence[tuple[Raw, AnyEvent]],
    notes: Sequence[tuple[Raw, Notes]],
    words: Sequence[RawWords],
    dropped: int,
) -> Log:
    """Return the log, with a rank and a host at every line where anything in the log gives them."""
    spoken = [_spoken(word) for word in words]
    raws = (
        [raw for raw, _ in events] + [raw for raw, _ in notes] + [raw for pair in spoken for raw in pair[:2]]
    )
    world = _world(files, raws, events, notes, spoken)
    placed = [replace(event, place=_place(raw, world)) for raw, event in events]
    processes = tuple(
        sorted(
            (_process(raw, process, world) for raw, process in notes),
            key=lambda process: _named_place(process.place),
        )
    )
    heard = tuple(
        sorted((_words(words, world) for words in spoken), key=lambda words: _named_place(words.first))
    )
    hosts = _hosts_of_ranks(placed, processes, heard)
    ordered = in_order(files, [_with_host(event, hosts) for event in placed])
    return Log(files, tuple(ordered), processes=processes, words=heard, hosts_of_ranks=hosts, dropped=dropped)


def _named_place(place: LogPosition) -> tuple[tuple[tuple[int, str], ...], int]:
    """Return the order of the names of the files, which does not depend on the order in which they were read."""
    return natural(place.file), place.line


def _spoken(words: RawWords) -> tuple[Raw, Raw, RawWords]:
    first = parse(words.first[:_LONGEST_WORDS].decode("utf-8", "replace"))
    last = parse(_last_drawn(words.last)[:_LONGEST_WORDS].decode("utf-8", "replace"))
    return (
        _headed(Raw(words.file, words.first_number, first, None), words.first_host),
        _headed(Raw(words.file, words.last_number, last, None), words.last_host),
        words,
    )


def _headed(raw: Raw, host: str) -> Raw:
    """Return the line on the host of the heading above it, where it has no labels of its own."""
    return raw if raw.is_labelled or not host else raw.on(host, None)


def _last_drawn(line: bytes) -> bytes:
    return line.rstrip(b"\r").rpartition(b"\r")[2]


def _world(
    files: Sequence[LogFile],
    raws: Sequence[Raw],
    events: Sequence[tuple[Raw, AnyEvent]],
    notes: Sequence[tuple[Raw, Notes]],
    spoken: Sequence[tuple[Raw, Raw, RawWords]],
) -> _World:
    most = max((noted.numbers.get("ranks", 0) for _, noted in notes), default=0)
    ranks = {
        (noted.host, noted.pid): noted.numbers["rank"]
        for _, noted in notes
        if "rank" in noted.numbers and noted.numbers.get("ranks") == most
    }
    for raw in raws:
        if raw.pid is not None and raw.host is not None and raw.prefix.rank is not None:
            ranks.setdefault((raw.host, raw.pid), raw.prefix.rank)
    named = {noted.host for _, noted in notes} | {raw.host for raw in raws if raw.host}
    named |= _labels_of_tracebacks(events)
    word_hosts = _word_hosts(raws, spoken, named)
    tasks_are_ranks = not any(
        raw.prefix.task is not None
        and (rank := _named_rank(raw, ranks)) is not None
        and rank != raw.prefix.task
        for raw in raws
    )
    hosts_of_tasks: dict[int, str] = {}
    of_files: dict[str, set[str]] = {}
    ranks_of_files: dict[str, set[int]] = {}
    for raw in raws:
        host = _named_host(raw, word_hosts)
        if host:
            of_files.setdefault(raw.file, set()).add(host)
            if raw.prefix.task is not None:
                hosts_of_tasks.setdefault(raw.prefix.task, host)
        rank = _named_rank(raw, ranks)
        if rank is not None:
            ranks_of_files.setdefault(raw.file, set()).add(rank)
    hosts = {host for file in of_files.values() for host in file}
    several = len(files) > 1
    return _World(
        ranks_of_processes=ranks,
        words_are_hosts=word_hosts,
        tasks_are_ranks=tasks_are_ranks,
        hosts_of_tasks=hosts_of_tasks,
        hosts_of_files=_file_hosts(files, of_files, several) if several or _is_one_node(notes, raws) else {},
        ranks_of_files=_file_ranks(files, ranks_of_files, several),
        locals_are_ranks=len(hosts) <= 1
        and not _are_beyond_one_node(raws)
        and not any(_SEVERAL_NODES.search(event.text) for _, event in events),
    )


def _are_beyond_one_node(raws: Sequence[Raw]) -> bool:
    """Return True if a label has a rank that is higher than any number on one node."""
    highest = max((raw.prefix.rank for raw in raws if raw.prefix.rank is not None), default=0)
    local = max((raw.prefix.local_rank for raw in raws if raw.prefix.local_rank is not None), default=0)
    return highest > max(local, _MOST_USUAL_RANKS - 1)


def _is_one_node(notes: Sequence[tuple[Raw, Notes]], raws: Sequence[Raw]) -> bool:
    """Return True if NCCL says that the job has one node, or nothing speaks of several ranks."""
    nodes = max((noted.numbers.get("nodes", 0) for _, noted in notes), default=0)
    if nodes:
        return nodes == 1
    return not any(raw.prefix.rank is not None or raw.prefix.task is not None for raw in raws)


def _labels_of_tracebacks(events: Iterable[tuple[Raw, AnyEvent]]) -> set[str]:
    """Words before whole tracebacks: Python writes none there, so a launcher did, and it writes hosts."""
    return {
        raw.prefix.word
        for raw, event in events
        if raw.prefix.word and isinstance(event, PythonException) and event.where
    }


def _word_hosts(
    raws: Sequence[Raw], spoken: Sequence[tuple[Raw, Raw, RawWords]], named: set[str]
) -> frozenset[tuple[str, str]]:
    """Words before a message that are names of hosts: known as such from elsewhere, or before nearly every line."""
    lines: Counter[str] = Counter()
    worded: Counter[str] = Counter()
    weight = {id(pair[0]): pair[2].lines for pair in spoken}
    skipped = {id(pair[1]) for pair in spoken}
    candidates: set[tuple[str, str]] = set()
    counted: set[tuple[str, int, str | None]] = set()  # a line that means several things counts once
    for raw in raws:
        line = (raw.file, raw.number, raw.prefix.word)
        if id(raw) in skipped or line in counted:
            continue
        counted.add(line)
        count = weight.get(id(raw), 1)
        lines[raw.file] += count
        if raw.prefix.word is not None:
            worded[raw.file] += count
            candidates.add((raw.file, raw.prefix.word))
    numbered = _numbered({word for _, word in candidates} | named)
    return frozenset(
        (file, word)
        for file, word in candidates
        if word in named or word in numbered or worded[file] >= _LABELLED_SHARE * lines[file]
    )


def _numbered(words: set[str]) -> set[str]:
    """Return the words that differ from another in their numbers only, as the hosts of a cluster do."""
    stems = Counter(_DIGITS.sub("", word) for word in words if _DIGITS.search(word))
    return {
        word
        for word in words
        if stems[_DIGITS.sub("", word)] > 1 and _DIGITS.sub("", word).strip("-_.").lower() not in _COUNTED
    }


def _named_rank(raw: Raw, ranks: Mapping[tuple[str, int], int]) -> int | None:
    if raw.prefix.rank is not None:
        return raw.prefix.rank
    return ranks.get(raw.process) if raw.process is not None else None


def _named_host(raw: Raw, word_hosts: frozenset[tuple[str, str]]) -> str | None:
    if raw.host:
        return raw.host
    if raw.prefix.host:
        return raw.prefix.host
    if raw.prefix.word is not None and (raw.file, raw.prefix.word) in word_hosts:
        return raw.prefix.word
    return raw.process[0] if raw.process else None


def _file_hosts(
    files: Sequence[LogFile], hosts_by_file: Mapping[str, set[str]], several: bool
) -> dict[str, str]:
    found = {file: next(iter(hosts)) for file, hosts in hosts_by_file.items() if len(hosts) == 1}
    for file in files if several else ():
        stem = _SUFFIX.sub("", file.name.rpartition("/")[2])
        if not hosts_by_file.get(file.name) and not _NO_HOST_STEM.match(stem) and not _FILE_RANK.search(stem):
            found[file.name] = stem
    return found


def _file_ranks(
    files: Sequence[LogFile], ranks_by_file: Mapping[str, set[int]], several: bool
) -> dict[str, int]:
    found = {file: next(iter(ranks)) for file, ranks in ranks_by_file.items() if len(ranks) == 1 and several}
    for file in files:
        match = _FILE_RANK.search(file.name)
        if match and len(ranks_by_file.get(file.name, ())) <= 1:
            found[file.name] = int(match["rank"])
    return found


def _place(raw: Raw, world: _World) -> LogPosition:
    prefix = raw.prefix
    rank = _named_rank(raw, world.ranks_of_processes)
    if rank is None and prefix.task is not None and world.tasks_are_ranks:
        rank = prefix.task
    if rank is None and prefix.task is None:
        rank = world.ranks_of_files.get(raw.file)
    if rank is None and prefix.local_rank is not None and world.locals_are_ranks and prefix.task is None:
        rank = prefix.local_rank
    host = _named_host(raw, world.words_are_hosts)
    if host is None and prefix.task is not None:
        host = world.hosts_of_tasks.get(prefix.task)
    if host is None:
        host = world.hosts_of_files.get(raw.file)
    return LogPosition(raw.file, raw.number, rank, host, prefix.time_s)


def _process(raw: Raw, notes: Notes, world: _World) -> Process:
    place = _place(raw, world)
    return notes.process(place, world.ranks_of_processes.get((notes.host, notes.pid), place.rank))


def _words(spoken: tuple[Raw, Raw, RawWords], world: _World) -> Words:
    first, last, words = spoken
    return Words(
        first=_place(first, world),
        first_text=first.prefix.message,
        last=_place(last, world),
        last_text=last.prefix.message,
        lines=words.lines,
    )


def _hosts_of_ranks(
    events: Iterable[AnyEvent], processes: Iterable[Process], words: Iterable[Words]
) -> dict[int, str]:
    """Return the host of each rank, as most lines that name both say."""
    votes: dict[int, Counter[str]] = {}
    for process in processes:
        if process.rank is not None:
            votes.setdefault(process.rank, Counter())[process.host] += 1000
    places = [event.place for event in events] + [
        place for word in words for place in (word.first, word.last)
    ]
    for place in places:
        if place.rank is not None and place.host is not None:
            votes.setdefault(place.rank, Counter())[place.host] += 1
    return {rank: counter.most_common(1)[0][0] for rank, counter in sorted(votes.items())}


def _with_host(event: AnyEvent, hosts: Mapping[int, str]) -> AnyEvent:
    place = event.place
    if place.host is None and place.rank is not None and place.rank in hosts:
        return replace(event, place=replace(place, host=hosts[place.rank]))
    return event
