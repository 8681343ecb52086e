"""From lines to events: reads each line once, keeps what means something, in memory that does not grow with the logs.

Nearly all lines of a large log are NCCL's own start-up lines or progress. Those cost two searches in bytes; only a line
that may mean something is decoded, and of lines that differ in nothing but numbers only the first few of each speaker.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ncclcheck.logs.glance import QUIET_STARTS, may_mean_something
from ncclcheck.logs.meaning import LONGEST_KEPT, Meanings
from ncclcheck.logs.nccl_header import Header, torn_apart
from ncclcheck.logs.nccl_header import parse as parse_header
from ncclcheck.logs.nccl_info import Notes
from ncclcheck.logs.prefix import parse as parse_prefix
from ncclcheck.logs.raw import Raw, RawWords
from ncclcheck.logs.resolve import resolve
from ncclcheck.model.events import CommInit, Log, LogFile, Place

LONGEST_TEXT = 4096  # of a line that is looked at
KEPT_OF_A_SHAPE = 4  # lines of one speaker that differ in their digits only
FREELY_LOOKED_AT = 150_000  # lines that may mean something and are looked at closely; after that
LOOKED_AT_PER_BATCH = (
    200  # so many of each batch, so that no log takes for ever and its end is seen all the same
)
MOST_OF_A_SHAPE = 20_000  # lines of all speakers together
MOST_PROCESSES = 20_000
MOST_HEADERS = 65_536
MOST_SHAPES = 200_000
MOST_SPEAKERS = 8192

_LABEL = re.compile(rb"[^:]{0,47}:(?: ?\[rank\d{1,6}\]:){0,2}")
_RULES = (b"====", b"----", b"****")  # of tables
_STACK = re.compile(rb"frame #\d|^[^:]{0,40}:?  time +:|~~~\^|\^\^\^").search
_DIGITS = b"0123456789"
_LEVEL = b"NCCL "


class Collector:
    """Takes the files one after the other; `log` is everything they say."""

    def __init__(self) -> None:
        self._files: list[LogFile] = []
        self._meanings = Meanings()
        self._notes: dict[tuple[str, int], tuple[Raw, Notes]] = {}
        self._headers: dict[bytes, tuple[Raw, Notes | None, Header | None]] = {}
        self._shapes: dict[int, int] = {}
        self._counts: dict[int, int] = {}
        self._allowance = FREELY_LOOKED_AT
        self._ordinary_shapes: set[int] = set()
        self._channel_ends: set[bytes] = set()
        self._words: dict[tuple[int, bytes], RawWords] = {}
        self._file = ""
        self._number = 0

    def read(
        self, name: str, batches: Iterable[list[bytes]], *, size_bytes: int = 0, unread: str = ""
    ) -> None:
        """All lines of one file are taken."""
        self._file, self._number = name, 0
        self._headers.clear()
        self._meanings.begin_file()
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
            tuple(self._files),
            self._meanings.events,
            list(self._notes.values()),
            self._words,
            self._meanings.dropped,
        )

    def _scan(self, lines: list[bytes]) -> None:
        """Every line is met once; the two commonest kinds, channels and progress, cost a search and a look-up each."""
        self._allowance = max(self._allowance, LOOKED_AT_PER_BATCH)
        ordinary = self._ordinary_shapes
        number = self._number
        for line in lines:
            number += 1
            position = line.find(_LEVEL)
            if position > 0:
                if not self._is_quiet(line, position):
                    self._number = number
                    self._odd(line)
            elif line:
                shape = hash(line.translate(None, _DIGITS))
                self._number = number
                if shape in ordinary or self._is_ordinary(line, shape):
                    self._spoken(line)
                else:
                    self._odd(line)
        self._number = number

    def _is_quiet(self, line: bytes, position: int) -> bool:
        """True if a line of NCCL tells nothing new: start-up without news, a channel that is known, or a worn shape."""
        if line[position + 5 : position + 13] == b"INFO Cha":
            if line[line.find(b" : ", position) + 3 :] in self._channel_ends:
                return True
        elif line[position + 5 : position + 15] in QUIET_STARTS and line.find(_LEVEL, position + 9) < 0:
            return True
        return self._is_worn(hash(line[position + 5 :].translate(None, _DIGITS)))

    def _is_ordinary(self, line: bytes, shape: int) -> bool:
        """True if no line of that shape means anything, or so many were met that one more tells nothing."""
        if may_mean_something(line[:LONGEST_TEXT]) and not self._is_worn(shape):
            return False
        if len(self._ordinary_shapes) < MOST_SHAPES:
            self._ordinary_shapes.add(shape)
        return True

    def _spoken(self, line: bytes) -> None:
        """An ordinary line: a part of a traceback, or words of the program."""
        if self._meanings.open_tracebacks and self._meanings.in_traceback(self._raw(line)):
            return
        if line[-4:] not in _RULES and not _STACK(line):
            self._speak(line)

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
                self._nccl(rest, raw, notes, header)
                return
        label = label_of(line)
        if self._is_repeated(label, line) or not self._may_look():
            return
        self._meanings.plain(self._raw(line))

    def _raw(self, line: bytes) -> Raw:
        prefix = parse_prefix(line[:LONGEST_TEXT].decode("utf-8", "replace"))
        return Raw(self._file, self._number, prefix, None)

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

    def _nccl(self, rest: bytes, raw: Raw, notes: Notes | None, header: Header) -> None:
        raw = raw.at(self._number)
        level, _, message = rest.partition(b" ")
        if level in (b"INFO", b"version"):
            text = (message if level == b"INFO" else rest).decode("utf-8", "replace")
            if level == b"version":
                text = "NCCL " + text
            stage = notes.info(text) if notes is not None else None
            if stage is not None:
                name, comm_id, rank, ranks = stage
                self._meanings.keep(
                    raw, CommInit(raw.place(), text[:LONGEST_KEPT], name, comm_id, rank, ranks)
                )
            if not may_mean_something(message) or b" -> " in message[-30:]:
                return
        label = f"{header.host}:{header.pid}".encode()
        if self._is_repeated(label, rest) or not self._may_look():
            return
        text = message.decode("utf-8", "replace")
        known = (
            f"{header.source} NCCL {level.decode('utf-8', 'replace')} {text}" if level != b"INFO" else text
        )
        self._meanings.meaning(known, raw, is_info=level == b"INFO")

    def _may_look(self) -> bool:
        """True while there is time left for lines that may mean something."""
        if self._allowance <= 0:
            self._meanings.dropped += 1
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


def label_of(line: bytes) -> bytes:
    """What tells the speaker of a line: the text before its first colon, with torch's `[rankN]:` after it."""
    match = _LABEL.match(line)
    return match[0] if match else b""
