"""What a line means, as events: exceptions with their tracebacks, launchers' tables, timeouts, connections, topics."""

from __future__ import annotations

import re

from msgspec.structs import replace

from ncclcheck.logs.lines.prefix import Prefix
from ncclcheck.logs.lines.raw import Raw
from ncclcheck.logs.messages.known import Group
from ncclcheck.logs.nccl_lines.nccl_info import version_in
from ncclcheck.logs.patterns.topic_tables import ALL_TOPICS, CLAIMED_BY_MESSAGE
from ncclcheck.logs.patterns.topics import topics as topics_of
from ncclcheck.logs.patterns.topics_harmless import why_harmless
from ncclcheck.logs.readers import collectives, connections, exceptions, exits, levels
from ncclcheck.logs.readers.assertions import Assertions
from ncclcheck.logs.readers.glance import LAST_ERROR, TRACEBACK
from ncclcheck.logs.readers.line_meaning import group_of, meant, rank_named_in, table_values, warning_in
from ncclcheck.logs.readers.named_nodes import node_named_in
from ncclcheck.logs.readers.ras_text import RasText
from ncclcheck.logs.readers.sections import Sections
from ncclcheck.logs.readers.shell_status import Shell
from ncclcheck.model.events import AnyEvent, ConnectFailure, Event, PythonException, Remark, WorkerExit

LONGEST_KEPT = 600  # of a line that is kept
MOST_EVENTS = 40_000
MOST_TASKS = 64  # of one line of Slurm
IGNORED_WITHIN_LINES = 40  # after `Exception ignored in`
_GUESSES = re.compile(
    "There are some potential root causes|Some common causes include|"
    r"\bprompts?: ?['\"\[]|\[(?:prompt|response|question|answer|ground_truth|output)\] "
)  # all that Ray can think of; what a model was asked, or says
LAST_ERROR_WITHIN_LINES = 40  # the line after `Last error:`, where the ranks' lines are mixed
MOST_LENT_LINES = 60  # of a traceback that a logger wrote
_SPAWNED = re.compile(
    r"-- Process (?P<local>\d{1,4}) terminated with the following error:"
)  # torch's mp.spawn
_ERROR_LEVELS = ("ERROR", "CRITICAL", "FATAL")
_WARNING_LEVELS = ("WARN", "WARNING")
_OPTIONAL = frozenset({"no-kernel-image"})  # a kernel for newer GPUs, instead of which another is used
MOST_TRACEBACK_LINES = 300  # then a traceback that nobody ended is forgotten
# What NCCL says at level INFO is news, not alarm, but for these.
_INFO_TOPICS = frozenset(topic.name for topic in ALL_TOPICS if topic.at_info)
_RAY_TASK = re.compile(r"\bray(?:::|_)\S{1,200} ?\(pid=\d{1,10}, (?:ip|host)=(?P<ip>[\w.:-]{2,63})[,)]")
_NEWS = frozenset(topic.name for topic in ALL_TOPICS if not topic.alarms)
_SAYS_NOTHING = _NEWS - {"finished", "workaround", "requeued"}  # of how it went
_FRAME = re.compile(r"\s{0,4}(?:#?\d{1,3}:?|\[\d{1,3}\]) {1,4}0x[0-9a-f]{8,18} ")  # of a native stack
_OF_FRAMES = frozenset({"nccl-frame", "nccl-crash", "crash"})
_TELLING_FRAMES = ("coordinator_address", "self.parallel_devices[self.local_rank]")  # of JAX, of Lightning
_CONTAINER_CLI = "nvidia-container-cli"  # whose error stands on a line of its own below the event of a pod
Speaker = tuple[int | None, int | None, int | None, str | None, str | None]


class Meanings:
    """The events of the lines so far; it remembers the tracebacks and tables that are still open."""

    def __init__(self) -> None:
        self.events: list[tuple[Raw, AnyEvent]] = []
        self.dropped = 0
        self.open_tracebacks: dict[Speaker, tuple[int, str]] = {}
        self._asserted = Assertions()
        self._ignored: dict[Speaker, int] = {}
        self._last_errors: dict[Speaker, int] = {}
        self._table: dict[Speaker, exits.Ended] = {}
        self._remote: dict[Speaker, tuple[int, str]] = {}  # where the task of Ray ran whose traceback comes
        self._ras = RasText()
        self._sections = Sections()
        self._lent: tuple[int, Raw] | None = None  # who wrote the line before a traceback without labels
        self._refused: tuple[int, str] = (-1, "")  # Open MPI prints a connection and its error on two lines
        self._event_at = (-1, "")  # the last line that named a node, and that node
        self._shell = Shell()

    @property
    def is_expecting(self) -> bool:
        """Return True while the next line of some speaker means something whatever its words are."""
        return bool(self.open_tracebacks or self._last_errors or self._shell.is_asked)

    @property
    def count(self) -> int:
        """How many events there were, kept or not."""
        return len(self.events) + self.dropped

    def begin_file(self) -> None:
        """Nothing that was open in another file goes on in the next."""
        self.open_tracebacks.clear()
        self._ignored.clear()
        self._last_errors.clear()
        self._table.clear()
        self._remote.clear()
        self._ras.forget()
        self._sections.forget()
        self._shell.forget()
        self._lent = None
        self._event_at = (-1, "")

    def host_of(self, line: int) -> str:
        """Return the host that the heading above that line of this file names; empty where none does."""
        return self._sections.host_of(line)

    def plain(self, raw: Raw) -> None:
        """Take a line of torch, Python, the launcher, the kernel or the program itself."""
        raw = self._of_its_section(self._with_its_class(raw))
        speaker, message = speaker_of(raw.prefix), self._with_its_connection(raw)
        if self._is_last_error(speaker, message, raw) or self._is_status(raw):
            return
        self._lend(raw)
        self._shell.read(message, raw.number)
        version = version_in(message)
        if version is not None:
            self.keep(
                raw,
                Remark(
                    raw.place(),
                    message[:LONGEST_KEPT],
                    "nccl-banner",
                    {"nccl": version[0], "cuda": version[1]},
                ),
            )
        if message.startswith("Exception ignored in"):
            self._ignored[speaker] = raw.number
            return
        if message.startswith(TRACEBACK):
            self.open_tracebacks[speaker] = (raw.number, "")
            if raw.number - self._ignored.get(speaker, -IGNORED_WITHIN_LINES) >= IGNORED_WITHIN_LINES:
                self.keep(
                    raw, Remark(raw.place(), message[:LONGEST_KEPT], "error-line")
                )  # it may be cut here
            return
        if speaker in self.open_tracebacks and message.startswith(" "):
            self._frame(speaker, raw)
            return
        if match := _RAY_TASK.search(message):
            self._remote[speaker] = (raw.number, match["ip"])
        for there, pid, event in self._ras.read(message, raw.prefix.rank, raw.place()):
            about = raw if there.rank is None else raw.of_rank(there.rank)
            self.keep(about.on(there.host or "", pid), event)
        for ended in exits.read(message):
            self._ended(speaker, ended, message, raw)
        self.meaning(message, raw, is_info=False)

    def _of_its_section(self, raw: Raw) -> Raw:
        """Return the line on the host that the heading above names, where the line has no labels of its own."""
        if not raw.is_labelled:
            self._sections.read(raw.prefix.message, raw.number)
            host = self._sections.host_of(raw.number)
            return raw.on(host, None) if host else raw
        return raw

    def _with_its_connection(self, raw: Raw) -> str:
        """Return the message, with the connection of the line before where this line has its error."""
        message = raw.prefix.message
        at, connection = self._refused
        if connection and raw.number == at + 1 and message.lstrip().startswith("Error:"):
            self._refused = (-1, "")
            return f"{connection} {message.strip()}"
        if "connect() to " in message:
            self._refused = (raw.number, message.strip())
        return message

    def _lend(self, raw: Raw) -> None:
        """Remember who wrote an error whose traceback follows without labels: a logger writes only one."""
        if raw.is_labelled and (raw.prefix.level in _ERROR_LEVELS or TRACEBACK in raw.prefix.message):
            self._lent = (raw.number, raw)
        elif match := _SPAWNED.match(raw.prefix.message):
            self._lent = (raw.number, raw.of_local_rank(int(match["local"])))

    def in_traceback(self, raw: Raw) -> bool:
        """Return True if the line is part of a traceback: a frame, or the exception that ends it."""
        self._forget_old(raw.number)
        if self._is_status(raw):
            return True
        raw = self._with_its_class(raw)
        speaker, message = speaker_of(raw.prefix), raw.prefix.message
        if self._is_last_error(speaker, message, raw):
            return True
        if speaker not in self.open_tracebacks:
            return False
        if message.startswith(" "):
            self._frame(speaker, raw)
            return True
        if exceptions.split(message, in_traceback=True) is None:
            return False
        self.meaning(message, raw, is_info=False)
        self.open_tracebacks.pop(speaker, None)
        return True

    def _is_status(self, raw: Raw) -> bool:
        """Take the exit status that the shell was asked for."""
        word, message = raw.prefix.word, raw.prefix.message  # `exit: 0` is no line of a speaker named exit
        status = self._shell.status(f"{word}: {message}" if word else message, raw.number)
        if status is None:
            return False
        self.meaning(f"exit code: {status}", raw, is_info=False)
        self.keep(raw, WorkerExit(raw.place(), raw.prefix.message, status))
        return True

    def _forget_old(self, number: int) -> None:
        """Forget the oldest traceback and the oldest `Last error:` whose next line did not come."""
        oldest, (begun, _) = next(iter(self.open_tracebacks.items()), (None, (0, "")))
        if oldest is not None and number - begun > MOST_TRACEBACK_LINES:
            del self.open_tracebacks[oldest]
        first = next(iter(self._last_errors), None)
        if first is not None and number - self._last_errors[first] > LAST_ERROR_WITHIN_LINES:
            del self._last_errors[first]

    def _is_last_error(self, speaker: Speaker, message: str, raw: Raw) -> bool:
        """Take torch's `Last error:`, and the line after it: NCCL's last warning, without NCCL's prefix."""
        if message.strip() == LAST_ERROR:
            self._last_errors[speaker] = raw.number
            return True
        if raw.prefix.word is not None and speaker not in self._last_errors:
            # a function of NCCL, which stands before its words
            speaker = speaker_of(replace(raw.prefix, word=None))
            message = f"{raw.prefix.word}: {message}"
        if speaker in self._last_errors and message.strip():
            del self._last_errors[speaker]
            self.meaning(f"{LAST_ERROR} {message.strip()}", raw, is_info=False)
            return True
        return False

    def _with_its_class(self, raw: Raw) -> Raw:
        """Return the line with its first word back, where that is the class of the expected exception and no label."""
        prefix = raw.prefix
        without = replace(prefix, word=None)
        if prefix.word is None or speaker_of(prefix) in self.open_tracebacks:
            return raw
        if speaker_of(without) not in self.open_tracebacks:
            return raw
        return replace(raw, prefix=replace(without, message=f"{prefix.word}: {prefix.message}"))

    def _frame(self, speaker: Speaker, raw: Raw) -> None:
        text = raw.prefix.message.strip()
        if any(frame in text for frame in _TELLING_FRAMES):
            self.meaning(text, raw, is_info=False)
        if text.startswith('File "') and speaker in self.open_tracebacks:
            self.open_tracebacks[speaker] = (self.open_tracebacks[speaker][0], text[:200])
        self._asserted.read(speaker, text)

    def meaning(self, text: str, raw: Raw, *, is_info: bool) -> None:
        """Keep every event that a line reports."""
        speaker = speaker_of(raw.prefix)
        text = self._asserted.full_text(speaker, _GUESSES.split(text, maxsplit=1)[0])
        shown_text = text[:LONGEST_KEPT]
        named = rank_named_in(text)
        if named is not None and raw.prefix.rank is None:
            raw = raw.of_rank(named)
        raw = self._where_it_ran(raw, text)
        place = raw.place()
        found: list[AnyEvent] = []
        group = None if is_info else group_of(text, raw.prefix.word)
        if group is not None and group.kind == "harmless":
            self._harmless(text, raw, group)
            return
        is_open = speaker in self.open_tracebacks
        exception = None if is_info else exceptions.split(text, in_traceback=is_open)
        topics = _topics_of(text, raw.prefix.level, is_info=is_info)
        if exception is None and not is_info and exceptions.is_mentioned(text):
            found.append(Remark(place, shown_text, "exception-mentioned"))
        if exception is not None:
            about = tuple(topic for topic, _ in topics)
            found.append(self._exception(speaker, exception, shown_text, raw, about, group))
        found += collectives.read(text, place)  # type: ignore[arg-type]
        found = _with_connections(found, list(connections.read(text, place)))
        found += [Remark(place, shown_text, topic, _short(values)) for topic, values in topics]
        if group is not None:
            found.append(Remark(place, shown_text, "message", {"text": text[:255], **table_values(group)}))
        warning = warning_in(text)
        if warning:
            found.append(Remark(place, shown_text, "nccl-warn", meant(warning)))
        if why := why_harmless(text):
            found.append(Remark(place, shown_text, "harmless", {"why": why}))
        is_news = all(isinstance(event, Remark) and event.topic in _SAYS_NOTHING for event in found)
        if is_news and not is_info and (topic := levels.topic_of(raw.prefix.level, text)):
            graded = {"graded": "warning"} if levels.is_warning(raw.prefix.level, text) else {}
            found.append(Remark(place, shown_text, topic, graded))
        for event in found:
            self.keep(
                raw,
                event if len(event.text) <= LONGEST_KEPT else replace(event, text=event.text[:LONGEST_KEPT]),
            )

    def _where_it_ran(self, raw: Raw, text: str) -> Raw:
        """Return the line on the node that it names, or an exception's where Ray ran its task as lines before tell."""
        node = node_named_in(text)
        if node:
            self._event_at = (raw.number, node)
            return raw.on(node, None)
        number, pod = self._event_at
        if raw.prefix.word == _CONTAINER_CLI and raw.number - number == 1:
            return raw.on(pod, None)
        if self._lent is not None and not raw.is_labelled and exceptions.split(text, in_traceback=False):
            begun, of = self._lent
            if raw.number - begun <= MOST_LENT_LINES:
                labels = replace(raw.prefix, rank=of.prefix.rank, local_rank=of.prefix.local_rank)
                return replace(raw, prefix=labels, host=of.prefix.host or raw.host)
        at, remote = self._remote.get(speaker_of(raw.prefix), (0, ""))
        if remote and raw.number - at <= MOST_TRACEBACK_LINES and exceptions.split(text, in_traceback=False):
            return raw.on(remote, None)
        return raw

    def _harmless(self, text: str, raw: Raw, group: Group) -> None:
        """Keep a line that the tables call harmless: keep what else it reports, unless that is an alarm."""
        place, shown_text = raw.place(), text[:LONGEST_KEPT]
        self.keep(raw, Remark(place, shown_text, "harmless", {"why": group.means}))
        for topic, values in topics_of(text):
            if topic in _NEWS:
                self.keep(raw, Remark(place, shown_text, topic, _short(values)))

    def _exception(
        self,
        speaker: Speaker,
        exception: tuple[str, str],
        text: str,
        raw: Raw,
        topics: tuple[str, ...],
        group: Group | None,
    ) -> PythonException:
        class_name, message = exception
        _, where = self.open_tracebacks.pop(speaker, (0, ""))
        ignored_at = self._ignored.get(speaker)
        kind = exceptions.kind_of(class_name, message)
        if group is not None and group.cause != "rank-exception":
            topics = (*topics, CLAIMED_BY_MESSAGE)
            if kind == "ordinary" and group.kind == "consequence":
                kind = "after-effect"
        if ignored_at is not None and raw.number - ignored_at <= IGNORED_WITHIN_LINES:
            kind = "ignored"
        return PythonException(raw.place(), text, class_name, message[:LONGEST_KEPT], kind, where, topics)

    def _ended(self, speaker: Speaker, ended: exits.Ended, text: str, raw: Raw) -> None:
        """Keep a launcher's line; torchrun's table has host, rank and exit code on lines of their own."""
        before = self._table.get(speaker, exits.Ended())
        if ended.pid is not None and ended.host is not None and ended.rank is not None:
            self.keep(
                raw.of_rank(ended.rank).on(ended.host, ended.pid),
                Remark(raw.place(), text[:200], "rank-place", {"pid": str(ended.pid)} if ended.pid else {}),
            )
            return
        if ended.tasks:
            for task in ended.tasks[:64]:
                there = raw.of_task(task).on(ended.host or "", None)
                self.keep(there, WorkerExit(there.place(), text[:LONGEST_KEPT], ended.code or 0))
            return
        if ended.code is None:
            self._table[speaker] = exits.Ended(
                rank=ended.rank if ended.rank is not None else before.rank,
                host=ended.host or before.host,
                root=ended.root or before.root,
            )
            return
        there = raw if ended.local_rank is None else raw.of_local_rank(ended.local_rank)
        if before.rank is not None:
            there = there.of_rank(before.rank)
        host = ended.host or before.host
        if host is not None:
            there = there.on(host, None)
        first = before.root and before.rank is not None
        self.keep(there, WorkerExit(there.place(), text[:LONGEST_KEPT], ended.code, first))
        self._table[speaker] = exits.Ended(host=None, root=before.root)

    def keep(self, raw: Raw, event: AnyEvent) -> None:
        """Keep the event, or count it where there is no more room."""
        if len(self.events) >= MOST_EVENTS:
            self.dropped += 1
        else:
            self.events.append((raw, event))


def _with_connections(found: list[AnyEvent], connected: list[Event]) -> list[AnyEvent]:
    """Return the events with the failed connections of the line: an exception that names one is no rank's own error."""
    if any(isinstance(event, ConnectFailure) and event.final for event in connected):
        found = [
            replace(event, kind="after-effect")
            if isinstance(event, PythonException) and event.kind == "ordinary"
            else event
            for event in found
        ]
    return [*found, *connected]  # type: ignore[list-item]


def _topics_of(text: str, level: str | None, *, is_info: bool) -> list[tuple[str, dict[str, str]]]:
    """Return the topics of a line; that another setting helped means that another run finished."""
    found = [topic for topic in topics_of(text) if not is_info or topic[0] in _INFO_TOPICS]
    if _FRAME.match(text):  # a function that is called in a crash is named for its work, not for an error
        found = [topic for topic in found if topic[0] in _OF_FRAMES]
    if level in _WARNING_LEVELS:  # the program says itself that it goes on without it
        found = [topic for topic in found if topic[0] not in _OPTIONAL]
    if any(topic == "remedy" for topic, _ in found):
        return [topic for topic in found if topic[0] not in ("finished", "succeeded")]
    return found


def speaker_of(prefix: Prefix) -> Speaker:
    """Whose line it is, as far as its labels tell."""
    return prefix.task, prefix.rank, prefix.local_rank, prefix.host, prefix.word


def _short(values: dict[str, str]) -> dict[str, str]:
    return {name: value[:255] for name, value in values.items()}
