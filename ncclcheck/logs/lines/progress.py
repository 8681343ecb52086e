"""What an ordinary line is: words, none, or what only a program that works writes.

Work shows in steps, losses, rates, results of a benchmark, answered requests. Such a line does not prove that the
job ended well. But what went wrong before several of them did not end the job, and a log with words of the program
and not one of them does not show that it worked.
"""

from __future__ import annotations

import re
from collections import deque

from ncclcheck.logs.lines.prompts import AT_HOST, ENVIRONMENT

# NO_WORDS: of a table, a native stack or a prompt; WORKS: of a program that works
NO_WORDS, WORDS, WORKS = 0, 1, 2
_RULES = (b"====", b"----", b"****")  # of tables
_STACK = re.compile(rb"frame #\d|^[^:]{0,40}:?  time +:|~~~\^|\^\^\^").search
_LONGEST = 600  # bytes of a line, at its end, that are searched: a progress bar is drawn over itself
RECENT = 3  # so many after a line show that the program went on after it
_PROGRESS = re.compile(
    rb"(?<![\w/.-])(?:global[_ ]?|train[_ ]?|training )?"
    rb"(?:step|iter|iteration|epoch|batch|update|round|episode)s?['\"]?[ ]{0,8}[=:#\[(|]{0,2}[ ]{0,8}\d"
    rb"|(?<![\w-])(?:loss|acc|accuracy|perplexity|reward|lr|grad_norm|throughput|busbw|ppl)['\"]?[ ]{0,4}"
    rb"[=:|]?[ ]{0,4}['\"]?-?(?!0\.0\b)\d{1,9}\.\d"
    rb"|\b(?:eval|train|test|val)\w{0,8}\]?[ :]{0,2}\[ ?\d{1,9} ?/ ?\d"
    rb"|\(tokens?/s\): (?!0\.0)\d|\bcheckpoints? saved\b|\btokens seen: [1-9]"
    rb"|(?<![\d.])(?!0%)\d{1,3}%\|"
    rb"|(?!0\.0{1,9}\b)(?<![\d.])\d{1,5}(?:\.\d{1,9})? ?it/s"  # of more: bytes of a download
    rb"|(?!0\.0{1,9}\b)(?<![\d.])(?<![<>] )\d{1,12}(?:\.\d{1,9})? ?(?:s/it|img/s|imgs/s|images/sec|samples/s|"
    rb"tokens?/s|toks?/s|steps?/s|examples/s|TFLOP|GB/s|GBps|MB/s|Gbps)|\b(?:images|samples|tokens)/sec: \d"
    rb"|^ {2,16}\d{1,14} {1,16}\d{1,14} {1,12}(?:float|half|bfloat16|u?int\d|double|fp8)"
    rb"|\"(?:POST|PUT) [^\" ]{1,200} HTTP/[12](?:\.[01])?\"[ :]{1,3}200\b"
    rb"|^(?: {1,24}\d{1,12}(?:\.\d{1,9})?){5,8}\s*$"  # a result of gloo's benchmark or perftest
    rb"|^\[\d{1,6}\]\s{1,8}[a-z][\w-]{1,40}[:=]-?\d{1,9}\.\d"  # XGBoost, LightGBM
    rb"|\bGenerated text: |\.{2,3} ?(?:passed|ok|OK|PASSED)$|^(?:PASS|PASSED|OK)\b"
    rb"|\b(?:saved|saving|wrote) (?:latest )?(?:model|(?:the )?(?:checkpoints?|ckpt|weights))\b"
    rb"|^(?!.{0,600}(?:trace|dump|stack|\bcore\b|debug|crash|\blogs?\b)).{0,400}"
    rb"\b(?:saved|written) (?:to|in|at|under) \S{0,200}[/.]\w|^--- PASS: |\bcopypaste: \w",
    re.IGNORECASE,
)
_BAR = re.compile(rb"[^|\r]{0,40}%\|[^|\r]{0,200}\| {0,2}\d{1,12}/\d{1,12} \[").search
_PROMPT = re.compile(rf"^{ENVIRONMENT}(?:\[{AT_HOST}\]|{AT_HOST}|(?:ba)?sh-\d\.\d|(?=\$))[#$%>]\s*$".encode())
# Of a tracker, which repeats at the end what the program logged: W&B, Comet, MLflow
_TRACKER = re.compile(
    rb"(?:^|[\s:>\])])(?:wandb: |COMET INFO: )"
    rb"|^(?:[^\x00-\x7f]{1,8} )?View (?:run .{1,60}|experiment) at: ?http"
)
_LABELS_AND_NAME = 160  # bytes at the start of a line
_TROUBLE = re.compile(
    rb"out of mem|\boom\b|prematur|\bidle\b|core-dump|\brc=-?[1-9]|: false\b|\bpanic|\bbroke|"
    rb"error(?!['\"]?[:=] ?\d)|fail|timed? ?out|retry|abort|exception|warn|NCCL INFO|kill|\bNamespace\(|"
    # which is only the start
    rb"\b(?:down)?load(?:ing|ed)?\b|fetching|tokeniz(?:er|ing)\b.{0,40}%\||\bconverting\b|\bserializ|preprocess",
    re.IGNORECASE,
)


def is_progress(line: bytes) -> bool:
    """Return True if a program that works says how far it is, and nothing else."""
    end = line[-_LONGEST:]
    return _PROGRESS.search(end) is not None and _TROUBLE.search(end) is None


def is_of_tracker(line: bytes) -> bool:
    """Return True for a line of a tracker: its losses and steps were reached before, and are repeated."""
    return _TRACKER.search(line[:_LABELS_AND_NAME]) is not None


def is_prompt(line: bytes) -> bool:
    """Return True for a shell's prompt without a command: what ran before it is over."""
    return _PROMPT.search(line) is not None


def kind_of(line: bytes) -> int:
    """Return NO_WORDS, WORDS or WORKS."""
    if line[-4:] in _RULES or _STACK(line) or is_prompt(line):
        return NO_WORDS
    return WORKS if is_progress(line) and not is_of_tracker(line) else WORDS


class RecentWork:
    """The last lines of work of a file; a bar that is drawn again as it was, as at a program's end, is no work."""

    def __init__(self) -> None:
        self.lines: deque[int] = deque(maxlen=RECENT)
        self._bar = b""

    def take(self, line: bytes, number: int) -> None:
        """Take a line of work."""
        match = _BAR(line[-_LONGEST:]) if b"%|" in line else None
        bar = match[0] if match else b""
        if not bar or bar != self._bar:
            self.lines.append(number)
        self._bar = bar
