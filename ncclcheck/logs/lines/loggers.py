"""What loggers write before a message: level, module and line, in the forms of the programs that start training.

Sources: Python logging (basicConfig, rich), loguru, vLLM, SGLang, DeepSpeed, Ray, absl, JSON loggers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

_LEVEL = r"(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|CRITICAL|FATAL|SUCCESS)"
_LOGGERS = tuple(
    re.compile(pattern)
    for pattern in (
        # vLLM: `ERROR 11-22 10:23:45 worker.py:123] `, `ERROR 11-22 10:23:45 [core.py:515] `
        rf"{_LEVEL} \d\d-\d\d \d\d:\d\d:\d\d \[?[\w./-]{{1,120}}:\d{{1,6}}\](?: |$)",
        # loguru, after its time: `| ERROR    | trainer.main:run:88 - `
        rf"\| {_LEVEL} {{0,8}}\| [\w.<>:-]{{1,200}} - ",
        # logging, after its time: `- train - ERROR - `, `- ERROR - `, `name - ERROR - `
        rf"(?:- )?(?:[\w.]{{1,120}} - )?{_LEVEL} {{0,8}}(?:- [\w.]{{1,120}}(?::\d{{1,6}})? )?- ",
        # logging, after its time: `[ERROR] [launch.py:325:sigkill_handler] `, `[ERROR] [worker] `, `[ERROR] `
        rf"\[{_LEVEL} {{0,8}}\](?::| -)? ?(?:\[[\w./:<>-]{{1,120}}\]:? ?)?",
        # others, after their time: `[error] `
        r"\[(?:trace|debug|info|warn(?:ing)?|error|critical|fatal)\] ",
        # logging's default, absl: `ERROR:root:`, `ERROR:torch.distributed.run:`
        rf"{_LEVEL}:[\w.]{{1,120}}: ?",
        # Ray and others, after their time: `ERROR worker.py:409 -- `
        rf"{_LEVEL} {{1,8}}[\w./-]{{1,120}}:\d{{1,6}} --? ",
        # a bare level before a rank: `INFO rank 0: `
        rf"{_LEVEL} (?=\[?[Rr]ank ?\d)",
        # a bare level: `ERROR: `; `WARNING: ` is no label, since what follows is no error
        r"(?:ERROR|CRITICAL|FATAL): ",
        # SGLang, after its time: ` TP3] `, ` DP0 TP0 EP0] `
        r"(?:(?:DP|TP|PP|EP)\d{1,4} ?){1,4}\] ?",
        # Determined, before its time: `<none>    [2021-12-07 10:40:06] 30a87832 || `
        r"<(?:none|trace|debug|info|warning|error|critical)> {1,12}(?=\[\d{4}-)",
        # torchelastic and Ray about repeated lines
        r"\[(?:\d{1,6} similar log lines|repeated \d{1,6}x across cluster)\] ?",
    )
)
_LEVELS = re.compile(_LEVEL, re.IGNORECASE)
_TENSOR_RANK = re.compile(r"TP(?P<rank>\d{1,4})\]")
_MOST_LINES = 200  # of one record
_LONGEST = 65_536
_HOSTS = ("host", "hostname", "node", "nodename")
_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,62}$")
_TRACEBACK = "Traceback (most recent call last)"
_TEXTS = ("exc_info", "exc_text", "exception", "traceback", "stack_trace", "stacktrace", "stack", "error")
_MESSAGES = ("message", "msg", "log", "event", "text", "body")
_LEVEL_KEYS = ("level", "levelname", "severity", "lvl")
_PARTS = ("fields", "span")  # of a record of Rust's tracing
_TOLD_LEVELS = ("ERROR", "CRITICAL", "FATAL", "WARN", "WARNING")
_RANKS = ("rank", "global_rank", "RANK")


def after_logger(text: str) -> tuple[str, int | None, str | None] | None:
    """Return the message after one logger's prefix, and the rank and level in it; None where there is none."""
    for pattern in _LOGGERS:
        match = pattern.match(text)
        if match is not None and match.end() > 0:
            tensor = _TENSOR_RANK.search(match[0]) if "DP" not in match[0] and "PP" not in match[0] else None
            level = _LEVELS.search(match[0])
            return (
                text[match.end() :],
                int(tensor["rank"]) if tensor else None,
                level[0].upper() if level else None,
            )
    return None


def lines_of_record(line: bytes) -> Iterator[bytes]:
    """Yield the lines that a JSON record holds, each with `[rankN]: ` if it has the rank; none if it is no record."""
    if len(line) > _LONGEST:
        return
    try:
        record = msgspec.json.decode(line, type=dict[str, object])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return
    for part in _PARTS:
        inner = record.get(part)
        if isinstance(inner, dict):
            record = {**inner, **record}
    rank = next((value for key in _RANKS if isinstance(value := record.get(key), int)), None)
    host = next((str(record[key]) for key in _HOSTS if isinstance(record.get(key), str)), "")
    label = f"[pod/{host}] ".encode() if _NAME.match(host) else b""
    label += b"" if rank is None else b"[rank%d]: " % rank
    level = next((value for key in _LEVEL_KEYS if isinstance(value := record.get(key), str)), "").upper()
    keys = dict.fromkeys(
        (*_MESSAGES, *_TEXTS, *(key for key, value in record.items() if _TRACEBACK in str(value)))
    )
    found = [record[key] for key in keys if isinstance(record.get(key), str)]
    if found and level == "INFO" and "fields" in record and isinstance(record.get("target"), str):
        found[0] = f"INFO {record['target']}: {found[0]}"  # as Rust's tracing writes it in plain text
    if found and level in _TOLD_LEVELS and len(found) == 1 and _TRACEBACK not in str(found[0]):
        found[0] = f"[{level}] {found[0]}"
    count = 0
    for text in found:
        for part in str(text).splitlines():
            if part.strip() and count < _MOST_LINES:
                count += 1
                yield label + part.encode()
