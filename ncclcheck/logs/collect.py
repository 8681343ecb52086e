"""From lines to events: reads each line once, keeps what means something, in memory that does not grow with the logs.

Nearly all lines of a large log are NCCL's own start-up lines or progress. Those cost two searches in bytes; only a line
that may mean something is decoded, and of lines that differ in nothing but numbers only the first few of each speaker.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec.structs import replace

from ncclcheck.logs import collectives, connections, exceptions, exits
from ncclcheck.logs.glance import QUIET_STARTS, may_mean_something
from ncclcheck.logs.nccl_header import Header, torn_apart
from ncclcheck.logs.nccl_header import parse as parse_header
from ncclcheck.logs.nccl_info import Notes, version_in
from ncclcheck.logs.prefix import Prefix
from ncclcheck.logs.prefix import parse as parse_prefix
from ncclcheck.logs.raw import Raw, RawWords
from ncclcheck.logs.resolve import resolve
from ncclcheck.logs.topics import topics as topics_of
from ncclcheck.logs.topics_harmless import why_harmless
from ncclcheck.model.events import (
    AnyEvent,
    CommInit,
    Log,
    LogFile,
    Place,
    PythonException,
    Remark,
    WorkerExit,
)

LONGEST_TEXT = 4096  # of a line that is looked at
LONGEST_KEPT = 600  # of a line that is kept
KEPT_OF_A_SHAPE = 4  # lines of one speaker that differ in their digits only
FREELY_LOOKED_AT = 150_000  # lines that may mean something and are looked at closely; after that
LOOKED_AT_PER_BATCH = (
    200  # so many of each batch, so that no log takes for ever and its end is seen all the same
)
MOST_OF_A_SHAPE = 20_000  # lines of all speakers together
MOST_EVENTS = 60_000
MOST_PROCESSES = 20_000
MOST_HEADERS = 65_536
MOST_SHAPES = 200_000
MOST_SPEAKERS = 8192
IGNORED_WITHIN_LINES = 40  # after `Exception ignored in`

_LABEL = re.compile(rb"[^:]{0,47}:(?: ?\[rank\d{1,6}\]:){0,2}")
_RULES = (b"====", b"----", b"****")  # of tables
_STACK = re.compile(rb"frame #\d|^[^:]{0,40}:?  time +:|~~~\^|\^\^\^").search
_DIGITS = b"0123456789"
_LEVEL = b"NCCL "
MOST_TRACEBACK_LINES = 300  # then a traceback that nobody ended is forgotten
# What NCCL says at level INFO is news, not alarm, but for these.
_INFO_TOPICS = frozenset(
    """no-libibverbs gdr-disabled gdr-missing wrong-magic ib-event-fatal ib-async-event no-rdma-driver plugin-provider
    plugin-load plugin-sharp p2p-disabled fabric closed-by-peer no-interface nccl-version ib-roce-version""".split()
)
Speaker = tuple[int | None, int | None, int | None, str | None, str | None]


class Collector:
    """Takes the files one after the other; `log` is everything they say."""

    def __init__(self) -> None:
        self._files: list[LogFile] = []
        self._events: list[tuple[Raw, AnyEvent]] = []
        self._dropped = 0
        self._notes: dict[tuple[str, int], tuple[Raw, Notes]] = {}
        self._headers: dict[bytes, tuple[Raw, Notes | None, Header | None]] = {}
        self._shapes: dict[int, int] = {}
        self._counts: dict[int, int] = {}
        self._allowance = FREELY_LOOKED_AT
        self._ordinary_shapes: set[int] = set()
        self._channel_ends: set[bytes] = set()
        self._words: dict[tuple[int, bytes], RawWords] = {}
        self._open_tracebacks: dict[Speaker, tuple[int, str]] = {}
        self._ignored: dict[Speaker, int] = {}
        self._table: dict[Speaker, exits.Ended] = {}
        self._file = ""
        self._number = 0

    def read(
        self, name: str, batches: Iterable[list[bytes]], *, size_bytes: int = 0, unread: str = ""
    ) -> None:
        """All lines of one file are taken."""
        self._file, self._number = name, 0
        self._headers.clear()
        self._open_tracebacks.clear()
        self._ignored.clear()
        self._table.clear()
        try:
            for lines in batches:
                self._scan(lines)
        finally:
            self._files.append(LogFile(name, size_bytes, self._number, unread))

    def note_unread(self, name: str, why: str) -> None:
        """The last file was not read to its end."""
        if self._files and self._files[-1].name == name:
            last = self._files[-1]
            self._files[-1] = LogFile(last.name, last.size_bytes, last.lines, why)
        else:
            self._files.append(LogFile(name, 0, 0, why))

    def has_lines_of(self, name: str) -> bool:
        """True if at least one line of the last file was taken."""
        return bool(self._files) and self._files[-1].name == name and self._files[-1].lines > 0

    def log(self) -> Log:
        """Everything that was taken, with ranks and hosts worked out."""
        return resolve(
            tuple(self._files), self._events, list(self._notes.values()), self._words, self._dropped
        )

    def _scan(self, lines: list[bytes]) -> None:
        """Every line is met once; the two commonest kinds, channels and progress, cost a search and a look-up each."""
        self._allowance = max(self._allowance, LOOKED_AT_PER_BATCH)
        shapes, ends = self._ordinary_shapes, self._channel_ends
        number = self._number
        for line in lines:
            number += 1
            position = line.find(_LEVEL)
            if position > 0:
                if line[position + 5 : position + 13] == b"INFO Cha":
                    end = line[line.find(b" : ", position) + 3 :]
                    if end in ends:
                        continue
                elif (
                    line[position + 5 : position + 15] in QUIET_STARTS
                    and line.find(_LEVEL, position + 9) < 0
                ):
                    continue
                shape = hash(line[position + 5 :].translate(None, _DIGITS))
                if self._is_worn(shape):
                    continue
                self._number = number
                self._odd(line)
                continue
            if not line:
                continue
            shape = hash(line.translate(None, _DIGITS))
            if shape not in shapes:
                self._number = number
                if len(line) > LONGEST_TEXT:
                    line = line[:LONGEST_TEXT]
                if may_mean_something(line) and not self._is_worn(shape):
                    self._odd(line)
                    continue
                if len(shapes) < MOST_SHAPES:
                    shapes.add(shape)
            self._number = number
            if self._open_tracebacks and self._in_traceback(line):
                continue
            if line[-4:] not in _RULES and not _STACK(line):
                self._speak(line)
        self._number = number

    # -- lines that may mean something

    def _odd(self, line: bytes) -> None:
        if b"\r" in line:
            parts = [part for part in line.split(b"\r") if part.strip()]
            if len(parts) > 1:
                # A progress bar drew over itself: what counts is what stood there last, and what came between.
                for part in dict.fromkeys(
                    (parts[0], *(one for one in parts[1:-1] if may_mean_something(one)), parts[-1])
                ):
                    self._one(part)
                return
            line = parts[0] if parts else b""
        for part in torn_apart(line) if line.count(_LEVEL) > 1 else (line,):
            self._one(part)

    def _one(self, line: bytes) -> None:
        line = line[:LONGEST_TEXT]
        position = line.find(_LEVEL)
        if position > 0:
            raw, notes, header = self._speaker(line, position)
            rest = line[position + 5 :]
            if rest.startswith(b"INFO Channel "):
                if notes is not None:
                    notes.channel(rest[5:])
                if len(self._channel_ends) < MOST_SHAPES:
                    self._channel_ends.add(line[line.find(b" : ", position) + 3 :])
                return
            if header is not None:
                self._nccl(line, rest, raw, notes, header)
                return
        label = label_of(line)
        if self._is_repeated(label, line) or not self._may_look():
            return
        text = line.decode("utf-8", "replace")
        prefix = parse_prefix(text)
        raw = Raw(self._file, self._number, prefix, None)
        self._plain(speaker_of(prefix), prefix.message, raw)

    def _speaker(self, line: bytes, position: int) -> tuple[Raw, Notes | None, Header | None]:
        """Who speaks, by what stands before NCCL's level: remembered, since each process says much."""
        key = line[:position]
        known = self._headers.get(key)
        if known is not None:
            return known
        text = key.decode("utf-8", "replace")
        header = parse_header(text)
        prefix = parse_prefix((header.before if header else text)[-400:])
        raw = Raw(self._file, self._number, prefix, None if header is None else (header.host, header.pid))
        notes = None
        if header is not None:
            pair = (header.host, header.pid)
            if pair not in self._notes and len(self._notes) < MOST_PROCESSES:
                self._notes[pair] = (raw, Notes(header.host, header.pid, Place(self._file, self._number)))
            entry = self._notes.get(pair)
            notes = entry[1] if entry else None
        if len(self._headers) >= MOST_HEADERS:
            self._headers.clear()
        self._headers[key] = (raw, notes, header)
        return raw, notes, header

    def _nccl(self, line: bytes, rest: bytes, raw: Raw, notes: Notes | None, header: Header) -> None:
        raw = raw.at(self._number)
        level, _, message = rest.partition(b" ")
        if level == b"INFO" or level == b"version":
            text = (message if level == b"INFO" else rest).decode("utf-8", "replace")
            if level == b"version":
                text = "NCCL " + text
            stage = notes.info(text) if notes is not None else None
            if stage is not None:
                name, comm_id, rank, ranks = stage
                self._keep(raw, CommInit(raw.place(), text[:LONGEST_KEPT], name, comm_id, rank, ranks))
            if not may_mean_something(message) or b" -> " in message[-30:]:
                return
        label = f"{header.host}:{header.pid}".encode()
        if self._is_repeated(label, rest) or not self._may_look():
            return
        text = message.decode("utf-8", "replace")
        known = (
            f"{header.source} NCCL {level.decode('utf-8', 'replace')} {text}" if level != b"INFO" else text
        )
        self._meaning(speaker_of(raw.prefix), known, raw, is_info=level == b"INFO")

    def _plain(self, speaker: Speaker, message: str, raw: Raw) -> None:
        """A line that is not NCCL's: of torch, Python, the launcher, the kernel, or the program itself."""
        version = version_in(message)
        if version is not None:
            self._keep(
                raw,
                Remark(
                    raw.place(),
                    message[:LONGEST_KEPT],
                    "nccl-banner",
                    {"nccl": version[0], "cuda": version[1]},
                ),
            )
        if message.startswith("Exception ignored in"):
            self._ignored[speaker] = self._number
            return
        if message.startswith("Traceback (most recent call last)"):
            self._open_tracebacks[speaker] = (self._number, "")
            return
        if speaker in self._open_tracebacks and message.startswith(" "):
            self._frame(speaker, message)
            return
        for ended in exits.read(message):
            self._ended(speaker, ended, message, raw)
        self._meaning(speaker, message, raw, is_info=False)

    def _in_traceback(self, line: bytes) -> bool:
        """True if a line without a word of alarm is part of a traceback: a frame, or the exception that ends it."""
        oldest, (number, _) = next(iter(self._open_tracebacks.items()))
        if self._number - number > MOST_TRACEBACK_LINES:
            del self._open_tracebacks[oldest]
        prefix = parse_prefix(line[:LONGEST_TEXT].decode("utf-8", "replace"))
        speaker = speaker_of(prefix)
        if speaker not in self._open_tracebacks:
            return False
        if prefix.message.startswith(" "):
            self._frame(speaker, prefix.message)
            return True
        if exceptions.split(prefix.message, in_traceback=True) is not None:
            self._meaning(speaker, prefix.message, Raw(self._file, self._number, prefix, None), is_info=False)
            self._open_tracebacks.pop(speaker, None)
            return True
        return False

    def _frame(self, speaker: Speaker, message: str) -> None:
        text = message.strip()
        if text.startswith('File "') and speaker in self._open_tracebacks:
            self._open_tracebacks[speaker] = (self._open_tracebacks[speaker][0], text[:200])

    def _meaning(self, speaker: Speaker, text: str, raw: Raw, *, is_info: bool) -> None:
        """Every event that a line tells is kept."""
        kept = text[:LONGEST_KEPT]
        named = collectives.rank_in(text)
        if named is not None and raw.prefix.rank is None:
            raw = raw.of_rank(named)
        place = raw.place()
        found: list[AnyEvent] = []
        is_open = speaker in self._open_tracebacks
        exception = None if is_info else exceptions.split(text, in_traceback=is_open)
        topics = [one for one in topics_of(text) if not is_info or one[0] in _INFO_TOPICS]
        if exception is not None:
            found.append(
                self._exception(speaker, exception, kept, place, tuple(topic for topic, _ in topics))
            )
        found += collectives.read(text, place)  # type: ignore[arg-type]
        found += connections.read(text, place)  # type: ignore[arg-type]
        found += [Remark(place, kept, topic, _short(values)) for topic, values in topics]
        if why := why_harmless(text):
            found.append(Remark(place, kept, "harmless", {"why": why}))
        for event in found:
            self._keep(raw, event if len(event.text) <= LONGEST_KEPT else _cut(event))

    def _exception(
        self, speaker: Speaker, exception: tuple[str, str], text: str, place: Place, topics: tuple[str, ...]
    ) -> PythonException:
        class_name, message = exception
        _, where = self._open_tracebacks.pop(speaker, (0, ""))
        ignored_at = self._ignored.get(speaker)
        kind = exceptions.kind_of(class_name, message)
        if ignored_at is not None and self._number - ignored_at <= IGNORED_WITHIN_LINES:
            kind = "ignored"
        return PythonException(place, text, class_name, message[:LONGEST_KEPT], kind, where, topics)

    def _ended(self, speaker: Speaker, ended: exits.Ended, text: str, raw: Raw) -> None:
        """A launcher's line is kept; torchrun's table tells host, rank and exit code on lines of their own."""
        before = self._table.get(speaker, exits.Ended())
        if ended.pid is not None and ended.host is not None and ended.rank is not None:
            self._keep(
                raw.of_rank(ended.rank).on(ended.host, ended.pid),
                Remark(raw.place(), text[:200], "rank-place"),
            )
            return
        if ended.tasks:
            for task in ended.tasks[:64]:
                there = raw.of_task(task).on(ended.host or "", None)
                self._keep(there, WorkerExit(there.place(), text[:LONGEST_KEPT], ended.code or 0))
            return
        if ended.code is None:
            self._table[speaker] = exits.Ended(
                rank=ended.rank if ended.rank is not None else before.rank,
                host=ended.host or before.host,
                root=ended.root or before.root,
            )
            return
        there = raw
        if before.rank is not None:
            there = there.of_rank(before.rank)
        if before.host is not None:
            there = there.on(before.host, None)
        first = before.root and before.rank is not None
        self._keep(there, WorkerExit(there.place(), text[:LONGEST_KEPT], ended.code, first))
        self._table[speaker] = exits.Ended(host=None, root=before.root)

    def _keep(self, raw: Raw, event: AnyEvent) -> None:
        if len(self._events) >= MOST_EVENTS:
            self._dropped += 1
        else:
            self._events.append((raw, event))

    def _may_look(self) -> bool:
        """True while there is time left for lines that may mean something."""
        if self._allowance <= 0:
            self._dropped += 1
            return False
        self._allowance -= 1
        return True

    def _is_worn(self, shape: int) -> bool:
        """True if so many lines of this shape were met, of all speakers, that one more tells nothing."""
        count = self._counts.get(shape, 0)
        if count >= MOST_OF_A_SHAPE:
            return True
        if count or len(self._counts) < MOST_SHAPES:
            self._counts[shape] = count + 1
        return False

    def _is_repeated(self, label: bytes, line: bytes) -> bool:
        """True if this speaker said the same, but for digits, often enough before."""
        shape = hash((self._file, label, line[:1024].translate(None, _DIGITS)))
        count = self._shapes.get(shape, 0)
        if count >= KEPT_OF_A_SHAPE:
            return True
        if count or len(self._shapes) < MOST_SHAPES:
            self._shapes[shape] = count + 1
        return False

    def _speak(self, line: bytes) -> None:
        """An ordinary line: only the first and the last of each speaker are kept."""
        colon = line.find(b":", 0, 48)
        key = (len(self._files), line[: max(colon, 0)])
        words = self._words.get(key)
        if words is not None:
            words.last_number, words.last = self._number, line
            words.lines += 1
        elif len(self._words) < MOST_SPEAKERS:
            self._words[key] = RawWords(self._file, self._number, line)


def speaker_of(prefix: Prefix) -> Speaker:
    """Whose line it is, as far as its labels tell."""
    return prefix.task, prefix.rank, prefix.local_rank, prefix.host, prefix.word


def label_of(line: bytes) -> bytes:
    """What tells the speaker of a line from others: the text before its first colon, with torch's `[rankN]:` after it."""
    match = _LABEL.match(line)
    return match[0] if match else b""


def _short(values: dict[str, str]) -> dict[str, str]:
    return {name: value[:255] for name, value in values.items()}


def _cut(event: AnyEvent) -> AnyEvent:
    return replace(event, text=event.text[:LONGEST_KEPT])
