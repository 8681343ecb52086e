"""Lines that their own program calls an error: a logger's level, glog's letter, or the word before the message.

Such a line alone names no cause, but a job whose log ends with one is not called fine.
"""

from __future__ import annotations

import re

_ERRORS = frozenset({"ERROR", "CRITICAL", "FATAL"})
_WORD = re.compile(
    r"^(?:[\w.()/-]{1,64}(?:\[\d{1,10}\])?: ){0,2}(?:error|ERROR|Error|fatal|FATAL|Fatal|CRITICAL|panic)"
    r"(?: (?:error|response from daemon))?: ?\S"
)
_GLOG = re.compile(
    r"^\[?[EF]\d{3,4} \d\d:\d\d:\d\d|^[EF] \d\d-\d\d \d\d:\d\d:\d\d|^\[[EF] [\w./]{1,80}:\d{1,6}\]"
)
_WARNS = frozenset({"WARN", "WARNING"})
_GLOG_WARNS = re.compile(r"^\[?W\d{0,4} (?:\d\d[-:]\d\d|[\w./]{1,120}:\d{1,6}\])")
_SHELL = re.compile(
    r": (?:command not found|Permission denied|cannot execute)|: not found$|Segmentation fault"
)
_ENDED = re.compile(
    r"^(?:Terminated|Aborted)\b|^make: \*\*\*"
    r"|\b(?:status|state):? (?:FAILED|NODE_FAIL|TIMEOUT|OUT_OF_MEMORY|PREEMPTED)\b"
    r"|\bexited unexpectedly|terminated with the following error|death signal, shutting down"
    r"|\bfailed with (?:error|status|code):? -?[1-9]"
)
_TROUBLE = re.compile(
    # `0 failed` and `timeout 1800 s` are a count and a setting
    r"\b(?:(?<!\b0 )fail(?:ed|s|ure|ures|ing)?(?![\w -]{0,24}[\u2502|:=] {0,8}0(?:[ |\u2502]|$))|"
    r"cannot|could ?n[o']t|unable to|refused|timed out|unreachable|"
    r"time ?out(?![\s:=(]{0,3}\d)|"
    r"hangs?|hanging|hung|stuck|stalled|deadlock\w*|no progress|not responding|denied|corrupt\w*|mismatch\w*|"
    r"never (?:exits|returns|ends|finishes|comes back)|does(?: not|n't) (?:exit|return|end|finish)|"
    r"killing job|forwarding signal|no (?:further |more )?output|nothing (?:more|else|happens)|"
    r"abort\w*|crash\w*|died|dead|killed|unresponsive|terminated)\b",
    re.IGNORECASE,
)
PATTERNS = (
    _TROUBLE.pattern,
    r"^Terminated\b",
    r"^Aborted\b",
    r"make: \*\*\*",
    r"(?:status|state):? (?:FAILED|NODE_FAIL|TIMEOUT|OUT_OF_MEMORY|PREEMPTED)",
    r"exited unexpectedly|terminated with the following error|death signal, shutting down",
    r"failed with (?:error|status|code):? -?[1-9]",
    r"error|fatal|critical|panic",
    r"[EF] \d\d-\d\d \d\d:\d\d:\d\d \w{1,80}\.py:",
    r": command not found",
    r": permission denied",
    r": cannot execute",
    r"\[?[EF]\d{3,4} \d\d:\d\d:\d\d[.\d]{0,10} +\d{0,10}[\w./ ]{0,80}\.cpp:\d{1,6}\]",
)


def is_error(level: str | None, text: str) -> bool:
    """Return True if the line's logger or its first words say that it is an error."""
    return level in _ERRORS or bool(
        _WORD.match(text) or _GLOG.match(text) or _SHELL.search(text) or _ENDED.search(text)
    )


def is_warning(level: str | None, text: str) -> bool:
    """Return True if the line's logger says that the program goes on: a level of its own, or glog's letter."""
    return level in _WARNS or _GLOG_WARNS.match(text) is not None


def topic_of(level: str | None, text: str) -> str:
    """Return the topic of a line that no table knows: an error, a word of something that went wrong, or none.

    Such a word alone says neither what went wrong nor in which process.
    """
    if is_error(level, text):
        return "error-line"
    return "trouble-word" if _TROUBLE.search(text) or text.startswith(("^C", "^Z")) else ""
