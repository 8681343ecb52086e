"""From lines to events: reads each line once, keeps what means something, in memory that does not grow with the logs.

Nearly all lines of a large log are NCCL's own start-up lines or progress, and differ in numbers only. Such a line costs
a look-up of its shape, whatever its time stamp and its labels are. Only a line whose shape may mean something is
decoded, and of each speaker only the first few of a shape.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable
from typing import TypeAlias

from msgspec.structs import replace

from ncclcheck.logs.lines.last_words import LastWords
from ncclcheck.logs.lines.loggers import lines_of_record
from ncclcheck.logs.lines.origin import resolve
from ncclcheck.logs.lines.prefix import parse as parse_prefix
from ncclcheck.logs.lines.prefix import without_colours
from ncclcheck.logs.lines.progress import NO_WORDS, WORDS, WORKS, RecentWork, kind_of
from ncclcheck.logs.lines.raw import Raw
from ncclcheck.logs.lines.shapes import Allowance, Repetitions, label_of, shape_of, shapes_of, speaker_of
from ncclcheck.logs.lines.speakers import Speakers
from ncclcheck.logs.nccl_lines.info_kinds import CHANNEL, CLOSELY, MUTE, NOTED, STAGE, InfoKinds
from ncclcheck.logs.nccl_lines.nccl_header import LEVEL_INFO, Header, is_torn, name_before, torn_apart
from ncclcheck.logs.nccl_lines.nccl_header import parse as parse_header
from ncclcheck.logs.nccl_lines.nccl_info import Notes
from ncclcheck.logs.readers.glance import may_mean_something
from ncclcheck.logs.readers.meaning import LONGEST_KEPT, Meanings
from ncclcheck.model.events import CommInit, Log, LogFile, LogPosition, Remark

LONGEST_TEXT = 4096  # of a line that is looked at
KEPT_OF_A_SHAPE = 4  # lines of one speaker that differ in their numbers only
NOTED_OF_A_SHAPE = 16  # of the INFO lines of one process that it is noted from
NOTED_FREELY, NOTED_PER_BATCH = 100_000, 100  # of all processes
FREELY_LOOKED_AT = 32_000  # lines that may mean something and are looked at closely
LOOKED_AT_PER_BATCH = 10  # after that: no log takes for ever
LOOKED_AT_LAST = 500  # of these lines, at the end of each file, all the same
MOST_OF_A_SHAPE = 20_000  # lines of all speakers together
MOST_PROCESSES = 16_384
MOST_TALKERS = 32_768
MOST_SHAPES = 65_536

_A_WORD = re.compile(rb"[A-Za-z]{3}").search
_OLD_WARNING = re.compile(
    rb":\d{1,10}:\d{1,10} \[\d{1,3}\] (?:[\w./-]{1,80}:\d{1,6} )?(?=WARN |INFO NET[ /])"
)  # NCCL 2.3 and older
# Each of these has its own meaning, however similar they look: the first rank of nccl-tests, a pod of a list
_IS_NO_REPETITION = re.compile(
    rb"# {1,3}Rank {1,6}0 |^[a-z0-9][a-z0-9. -]{2,320} \d{1,3}/\d{1,3} {1,12}[A-Z]\w"
).search
_LEVEL = b"NCCL "
_BANNER = b"NCCL version "
_INFO = b"INFO "
_REPEATABLE = (NOTED, CLOSELY)
# Of a thread: the notes on its process (None where there are too many), and whether its header could be read.
Talker: TypeAlias = tuple[Notes | None, bool]


class Collector:
    """Takes the files one after the other; `log` is everything they say."""

    def __init__(self, *, freely_looked_at: int = FREELY_LOOKED_AT) -> None:
        self._files: list[LogFile] = []
        self._meanings = Meanings()
        self._notes: dict[tuple[str, int], tuple[Raw, Notes]] = {}
        self._talkers: dict[bytes, Talker] = {}
        self._kinds = InfoKinds(MOST_SHAPES)
        self._noted = Repetitions(NOTED_OF_A_SHAPE, MOST_SHAPES)
        self._said = Repetitions(KEPT_OF_A_SHAPE, MOST_SHAPES)
        self._worn = Repetitions(MOST_OF_A_SHAPE, MOST_SHAPES)
        self._looks = Allowance(freely_looked_at, LOOKED_AT_PER_BATCH)
        self._notings = Allowance(NOTED_FREELY, NOTED_PER_BATCH)
        self._meetings = Allowance(MOST_TALKERS, NOTED_PER_BATCH)
        self._ordinary: dict[int, int] = {}
        # the last lines of each file that only a program at work writes, and those of this file
        self._works: dict[str, tuple[int, ...]] = {}
        self._work = RecentWork()
        self._last_words = LastWords()
        self._news: list[Remark] = []
        self._meant_nothing: dict[int, int] = {}  # shapes that were looked at in vain
        self._speakers = Speakers()
        self._unseen: deque[tuple[int, bytes]] = deque(maxlen=LOOKED_AT_LAST)
        self._file, self._number = "", 0

    def read(
        self, name: str, batches: Iterable[list[bytes]], *, size_bytes: int = 0, unread: str = ""
    ) -> None:
        """All lines of one file are taken."""
        self._file, self._number = name, 0
        self._talkers.clear()
        self._speakers.begin_file(name)
        self._meanings.begin_file()
        self._unseen.clear()
        try:
            for lines in batches:
                self._scan(lines)
        finally:
            self._see_the_end()
            self._end_file()
            self._files.append(LogFile(name, size_bytes, self._number, unread))

    def _see_the_end(self) -> None:
        """Look at the last of the lines for which no look was left, as at all others before."""
        number, lines = self._number, tuple(self._unseen)
        self._unseen.clear()
        self._looks.refill(len(lines))
        for its_number, line in lines:
            self._number = its_number
            self._meanings.dropped -= 1
            self._odd(line)
        self._number = number

    def _end_file(self) -> None:
        """Keep which lines of the file show work, its last new words, and on which host they were spoken."""
        self._speakers.place(self._meanings.host_of)
        self._news += self._last_words.end(self._file, max(self._work.lines, default=0))
        if self._work.lines:
            self._works[self._file] = tuple(self._work.lines)
            self._work = RecentWork()

    def note_unread(self, name: str, why: str) -> None:
        """Note why the last file was not read to its end."""
        if self._files and self._files[-1].name == name:
            self._files[-1] = replace(self._files[-1], unread=why)
        else:
            self._files.append(LogFile(name, 0, 0, why))

    def has_lines_of(self, name: str) -> bool:
        """Return True if at least one line of the last file was taken."""
        return bool(self._files) and self._files[-1].name == name and self._files[-1].lines > 0

    def log(self) -> Log:
        """Everything that was taken, with ranks and hosts worked out; after it nothing more can be taken."""
        self._forget()
        log = resolve(
            tuple(self._files),
            self._meanings.events,
            list(self._notes.values()),
            self._speakers.words,
            self._meanings.dropped,
        )
        return replace(log, works=dict(self._works), news=tuple(self._news))

    def _forget(self) -> None:
        """Give back what only reading needs, which is half of the memory, before the rest is worked out."""
        for known in (self._talkers, self._ordinary, self._meant_nothing):
            known.clear()
        for repetitions in (self._noted, self._said, self._worn):
            repetitions.forget()

    def _scan(self, lines: list[bytes]) -> None:
        """Every line is read once; one that adds nothing new costs a few searches and look-ups in bytes."""
        self._looks.refill()
        self._notings.refill()
        self._meetings.refill()
        ordinary, take = self._ordinary, self._speakers.take
        number = self._number
        is_expecting = self._meanings.is_expecting
        for line, shape in zip(lines, shapes_of(lines), strict=True):
            number += 1
            # Of a shape with NCCL's level none is ordinary, so no line of NCCL is taken here.
            if (kind := ordinary.get(shape)) is not None and not is_expecting:
                if kind == WORKS:
                    self._work.take(line, number)
                if kind:
                    take(line, number, shape)
                continue
            position = line.find(_LEVEL)
            if position > 0:
                if self._is_known(line, position):
                    continue
                self._number = number
                self._odd(line)
            elif line:
                self._number = number
                self._of_no_known_shape(line, shape)
            is_expecting = self._meanings.is_expecting
        self._number = number
        self._last_words.take_last_of(lines, number)

    def _of_no_known_shape(self, line: bytes, shape: int) -> None:
        """Take a line that is not NCCL's, and of a new shape, or of one that may mean something here."""
        kind = self._ordinary.get(shape)
        if kind is None and self._is_ordinary(line, shape):
            kind = self._kind_of_new(line)
            if len(self._ordinary) < MOST_SHAPES:
                self._ordinary[shape] = kind
        if kind is None:
            self._odd(line)
        else:
            self._spoken(line, kind, shape)

    def _is_known(self, line: bytes, position: int) -> bool:
        """Return True if this is an INFO line of a known thread and adds nothing new, as nearly all lines do."""
        start = position + 10
        bracket = line.rfind(b" [", 0, position)
        if bracket < 0 or line[position + 5 : start] != _INFO:
            return False
        talker = self._talkers.get(line[line.rfind(b" ", 0, bracket) + 1 : bracket])
        if talker is None:
            return False
        shape = shape_of(line[start:])
        kind = self._kinds.known.get(shape)
        if kind == MUTE:
            return True
        notes = talker[0]
        if kind == CHANNEL:
            return notes is None or notes.knows_channel(line[start:])
        return kind in _REPEATABLE and self._noted.has_enough(hash((shape, id(notes))))

    def _is_ordinary(self, line: bytes, shape: int) -> bool:
        """Return True if no line of that shape means anything, or so many were seen that one more adds nothing."""
        return not may_mean_something(line[:LONGEST_TEXT]) or self._worn.is_one_more(shape)

    def _kind_of_new(self, line: bytes) -> int:
        """Return what an ordinary line is whose shape is new."""
        if line.endswith(b" ") and not self._raw(line).prefix.message.strip():
            return NO_WORDS  # a label without words
        kind = kind_of(line)
        if kind == WORDS and _A_WORD(line):
            self._last_words.take_new(line, self._number)
        return kind

    def _spoken(self, line: bytes, kind: int, shape: int) -> None:
        """Take an ordinary line: a part of a traceback, or output of the program."""
        if self._meanings.is_expecting and self._meanings.in_traceback(self._raw(line)):
            return
        if kind == WORKS:
            self._work.take(line, self._number)
        if kind:
            self._speakers.take(line, self._number, shape)

    # -- lines that may mean something

    def _odd(self, line: bytes) -> None:
        if not self._looks.is_left and LEVEL_INFO not in line:
            self._leave_out(line)
            return
        if b"\r" in line:
            parts = [part for part in line.split(b"\r") if part.strip()]
            if len(parts) > 1:
                # A progress bar drew over itself: what counts is what stood there last, and what came between.
                for part in dict.fromkeys(
                    (parts[0], *(part for part in parts[1:-1] if may_mean_something(part)), parts[-1])
                ):
                    self._read_line(part)
                return
            line = parts[0] if parts else b""
        parts = list(lines_of_record(line)) if line[:1] == b"{" else []
        for part in parts or (torn_apart(line) if line.count(_LEVEL) > 1 and is_torn(line, 2) else (line,)):
            self._read_line(part)

    def _leave_out(self, line: bytes) -> None:
        """Keep a line that is no longer read closely, for the end of its file; not one of a shape seen often enough."""
        if not self._said.has_enough(shape_of(line[:1024], self._file, speaker_of(line))):
            self._meanings.dropped += 1
            self._unseen.append((self._number, line[:LONGEST_TEXT]))

    def _read_line(self, line: bytes) -> None:
        line = line[:LONGEST_TEXT]
        if b"\x1b" in line:
            line = without_colours(line)
        if (b" WARN " in line or b"] INFO NET" in line) and _LEVEL not in line:
            line = _OLD_WARNING.sub(rb"\g<0>NCCL ", line, count=1)
        position = line.find(_LEVEL)
        name = name_before(line, position) if position > 0 else b""
        if name:
            talker = self._talkers.get(name) or self._new_talker(name, line, position)
            if talker is not None and talker[1]:
                if line.startswith(_INFO, position + 5):
                    self._info(line, position, shape_of(line[position + 10 :]), talker[0])
                else:
                    self._nccl(line, position, name)
                return
        self._plain(line)

    def _plain(self, line: bytes) -> None:
        """Take a line that is not NCCL's own; of a shape that meant nothing to any reader it is an ordinary one."""
        shape = shape_of(line[:1024], self._file, speaker_of(line))
        # Of a table of ranks only the first shows which process wrote it, and a log may hold many tables.
        if self._said.is_one_more(shape) and not _IS_NO_REPETITION(line):
            if (kind := self._meant_nothing.get(shape)) is not None:
                self._spoken(line, kind, shape)
            return
        if not self._may_look():
            return
        before = self._meanings.count
        self._meanings.plain(self._raw(line))
        if self._meanings.count == before and not self._meanings.is_expecting:
            kind = self._kind_of_new(line)
            if len(self._meant_nothing) < MOST_SHAPES:
                self._meant_nothing[shape] = kind
            self._spoken(line, kind, shape)

    def _raw(self, line: bytes) -> Raw:
        prefix = parse_prefix(line[:LONGEST_TEXT].decode("utf-8", "replace"))
        return Raw(self._file, self._number, prefix, None)

    def _new_talker(self, name: bytes, line: bytes, position: int) -> Talker | None:
        """Return who a thread is that speaks for the first time in this file, and the notes on its process."""
        if not self._meetings.take():
            return None
        _, notes, header = self._talker(line, position)
        talker = notes, header is not None
        if len(self._talkers) >= MOST_TALKERS:
            self._talkers.clear()
        self._talkers[name] = talker
        return talker

    def _talker(self, line: bytes, position: int) -> tuple[Raw, Notes | None, Header | None]:
        """Who speaks on this line, by what stands before NCCL's level."""
        text = line[max(position - 1100, 0) : position].decode("utf-8", "replace")
        header = parse_header(text)
        prefix = parse_prefix((header.before if header else text)[-400:])
        if header is None:
            return Raw(self._file, self._number, prefix, None), None, None
        pair = (header.host, header.pid)
        raw = Raw(self._file, self._number, prefix, pair)
        if pair not in self._notes and len(self._notes) < MOST_PROCESSES:
            self._notes[pair] = (raw, Notes(header.host, header.pid, LogPosition(self._file, self._number)))
        entry = self._notes.get(pair)
        return raw, entry[1] if entry else None, header

    def _info(self, line: bytes, position: int, shape: int, notes: Notes | None) -> None:
        """Take an INFO line of a known speaker that can match a pattern or describe its process."""
        message = line[position + 10 :].rstrip(b"\r")
        if b"\r" in message:
            self._odd(line)
            return
        if _LEVEL in message and is_torn(message, 1):
            if notes is not None and message.startswith(_BANNER):  # no torn line: rank 0 says its version so
                notes.info(message[:LONGEST_TEXT].decode("utf-8", "replace"))
            self._torn(line, shape)
            return
        kind = self._kinds.of(shape, message[:LONGEST_TEXT])
        if kind == CHANNEL and notes is not None:
            notes.channel(message)
        elif kind == STAGE or self._is_worth_noting(kind, shape, notes):
            self._note(line, position, shape, notes)

    def _is_worth_noting(self, kind: int, shape: int, notes: Notes | None) -> bool:
        """Return True if this process did not say that often enough before."""
        return kind in _REPEATABLE and not self._noted.is_one_more(hash((shape, id(notes))))

    def _note(self, line: bytes, position: int, shape: int, notes: Notes | None) -> None:
        """Note what an INFO line says about its process, and keep its events."""
        if not self._notings.take():
            return
        text = line[position + 10 :][:LONGEST_TEXT].rstrip(b"\r").decode("utf-8", "replace")
        raw, _, _ = self._talker(line, position)
        stage = notes.info(text) if notes is not None else None
        if stage is not None:
            name, comm_id, rank, ranks = stage
            self._meanings.keep(raw, CommInit(raw.place(), text[:LONGEST_KEPT], name, comm_id, rank, ranks))
        if self._kinds.may_mean_something(shape, text):
            before = self._meanings.count
            self._meanings.meaning(text, raw, is_info=True)
            if self._meanings.count == before:
                self._kinds.meant_nothing(shape)

    def _torn(self, line: bytes, shape: int) -> None:
        """Take an INFO line with another line of NCCL in it, or with a damaged header."""
        if self._worn.is_one_more(shape):
            return
        if len(parts := torn_apart(line)) > 1:
            for part in parts:
                self._read_line(part)
            return
        label = label_of(line)
        if not self._said.is_one_more(shape_of(line[:1024], self._file, label)) and self._may_look():
            self._meanings.plain(self._raw(line))

    def _nccl(self, line: bytes, position: int, name: bytes) -> None:
        """Take a line of level WARN, or `NCCL version`, of a known process."""
        rest = line[position + 5 :]
        process = name.rpartition(b":")[0]
        if self._said.is_one_more(shape_of(rest[:1024], self._file, process)) or not self._may_look():
            return
        raw, notes, header = self._talker(line, position)
        if header is None:
            self._meanings.plain(self._raw(line))
            return
        level, _, message = rest.decode("utf-8", "replace").partition(" ")
        if level == "version" and notes is not None:
            notes.info(f"NCCL version {message}")
        self._meanings.meaning(f"{header.source} NCCL {level} {message}", raw, is_info=False)

    def _may_look(self) -> bool:
        """Return True while there is time left for lines that may mean something."""
        if self._looks.take():
            return True
        self._meanings.dropped += 1
        return False
