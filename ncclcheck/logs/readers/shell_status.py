"""What a shell answers when it is asked how the last command ended: the line below `echo $?`.

The status is the job's only if the job was the last command. That of `tail`, of a pipeline's `tee` and of a command
that was sent to the background tell nothing of it.
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

from msgspec import Struct

from ncclcheck.logs.lines.prompts import AT_HOST, BRACKETED, ENVIRONMENT, SIGNS

_STATUS = r"\$(?:\?|\{\?\}|\{?(?P<pipe>PIPESTATUS)(?:\[(?P<which>[0@*])\])?\}?)"
_WORDS = r"[^\"'$;|&\n]{0,60}"
_ASKED = re.compile(
    rf"(?:^|[$#>%;&|] ?)\s?echo (?:-\w )?(?P<before>\"?{_WORDS}){_STATUS}(?P<after>{_WORDS}\"?)\s*$"
)
_OTHERS = (
    "ls", "ll", "cat", "tail", "head", "less", "more", "grep", "egrep", "rg", "awk", "sed", "wc", "cd", "pwd",
    "echo", "export", "unset", "ps", "top", "htop", "kill", "pkill", "killall", "df", "du", "free", "date",
    "which", "stat", "file", "find", "vi", "vim", "nano", "mkdir", "rm", "cp", "mv", "ln", "touch", "chmod",
    "tar", "scp", "rsync", "ssh", "curl", "wget", "git", "diff", "sort", "history", "clear", "sleep",
    "printenv", "uname", "hostname", "sinfo", "squeue", "sacct", "scontrol", "sbatch", "scancel", "pip",
    "pip3", "conda", "module", "ulimit", "lsmod", "dmesg", "nvidia-smi", "rocm-smi", "jobs", "disown",
    "watch", "lscpu", "lspci", "tmux", "screen", "true", "test", "tee", "cmp", "md5sum", "sha256sum", "ping",
    "ip", "ibstat", "ibv_devinfo", "wait", "sync", "sudo dmesg", "docker ps", "docker logs", "docker inspect",
    "docker images", "docker pull", "docker build", "docker stop", "docker rm", "docker cp", "podman logs",
    "kubectl get", "kubectl logs", "kubectl describe", "kubectl apply", "kubectl create", "kubectl delete",
    "kubectl wait", "kubectl -n", "ray status", "ray job submit", "ray start", "ray stop",
)  # fmt: skip
_PROMPT = r"^[^$#>%\n]{0,160}[$#>%] ?"
_OTHER = re.compile(rf"(?:sudo )?(?:{'|'.join(map(re.escape, _OTHERS))})(?=[\s;]|$)(?!.*\bexec\b)")
_COMMAND = re.compile(
    rf"^{ENVIRONMENT}(?:{BRACKETED}{SIGNS}|{AT_HOST}[#$%>]|"
    r"[A-Za-z~/][\w./~-]{1,62}[#$]|(?P<sign>[$#>%])) ?(?P<command>[\w./~(\"'].{0,4000})$"
)
_UNSURE = "#>%"  # signs that begin a comment, a quotation or the rest of a bar as well
_PIPE = re.compile(r"(?<!\|)\|&?(?!\|)")
_BACKGROUND = re.compile(r"(?<![&>|])&\s*$|\bnohup\b|\bdocker run\b.{0,200} (?:-d\b|--detach\b)")
# What may be the job: a launcher, an interpreter with a program, a script by its name
_STARTS = re.compile(
    r"\b(?:torchrun|mpirun|mpiexec|prterun|srun|jsrun|deepspeed|accelerate|horovodrun|colossalai|composer|vllm|trtllm-\w+|"
    r"llamafactory-cli|swift|axolotl|\w{3,30}_perf|docker run|docker compose|singularity|apptainer|enroot|ray job|"
    r"python[\d.]{0,4} (?!-c\b|--version|-V\b))|"
    r"(?:\./|sh )\S{0,200}(?:run|train|launch|start|job|bench|test|demo|main|sft|grpo|dpo|pretrain|finetune)"
)
_NEVER_FAILS = re.compile(r"\|\|")
_TEE = re.compile(r"\|&? ?tee\b")
PATTERNS = (
    r"echo ",
    r"\| tee ",
    r"\|& tee ",
    r"pipefail",
    r"\b(?:exit|status|code|rc=|rc:)",
    *(f"{re.escape(sign)} {re.escape(command)}" for sign in "$#>%" for command in _OTHERS),
)
_HIGHEST = 255
_Command: TypeAlias = Literal["job", "piped", "background", "other", "unknown"]


class _Question(Struct, frozen=True):
    """Where the status was asked for, the words around it, and whether it is the first one of a pipeline."""

    line: int
    answer: re.Pattern[str]
    is_of_first: bool
    is_on_its_own: bool


class Shell:
    """Remembers what the last command was, and that its exit status was asked for."""

    def __init__(self) -> None:
        self._asked: _Question | None = None
        self._last: _Command = "job"
        self._pipes_fail = False

    @property
    def is_asked(self) -> bool:
        """Return True while the answer may come on the next line."""
        return self._asked is not None and self._asked.is_on_its_own

    def forget(self) -> None:
        """Nothing that was asked in one file is answered in the next."""
        self._asked, self._last, self._pipes_fail = None, "job", False

    def read(self, text: str, line: int) -> None:
        """Take a line that may ask, or may be a command."""
        question = _question(text, line)
        if question is not None:
            self._asked = question
            if question.is_on_its_own:
                return
        if "pipefail" in text:
            self._pipes_fail = True
        command = _COMMAND.match(text)
        if command is not None:
            kind = _kind_of(command["command"])
            if kind == "other" or (command["sign"] or "$") not in _UNSURE:
                self._last = kind
        elif _TEE.search(text) and self._last == "job":  # on the next line of the command
            self._last = "piped"

    def status(self, text: str, line: int) -> int | None:
        """Return the status of the job where this line is the answer."""
        asked = self._asked
        if asked is None or line <= asked.line:
            return None
        match = asked.answer.fullmatch(text.strip())
        if asked.is_on_its_own or match is not None:
            self._asked = None
        if match is None or (asked.is_on_its_own and line != asked.line + 1):
            return None
        status, last = int(match["status"]), self._last
        if asked.is_on_its_own:
            self._last = "other"  # the next status is that of `echo`
        hides = last == "piped" and not asked.is_of_first and not self._pipes_fail and status == 0
        # Of an unknown command 0 proves nothing: the job may have failed before it.
        hides = hides or (last == "unknown" and status == 0)
        return None if last in ("other", "background") or hides or status > _HIGHEST else status


def _question(text: str, line: int) -> _Question | None:
    match = _ASKED.search(text)
    if match is None:
        return None
    before, after = match["before"].lstrip('"'), match["after"].rstrip('"')
    further = r"(?: \d{1,3})*" if match["which"] in ("@", "*") else ""
    is_on_its_own = not text[: match.start()].strip() or re.search(
        _PROMPT + "$", text[: match.end()].split("echo")[0]
    )
    if not is_on_its_own and len(before + after) < len("rc="):  # a number alone may be anything
        return None
    pattern = re.compile(rf"{re.escape(before)}(?P<status>\d{{1,3}}){further}{re.escape(after)}")
    return _Question(line, pattern, match["pipe"] is not None, bool(is_on_its_own))


def _kind_of(command: str) -> _Command:
    """Return the event that the exit status of a command shows."""
    asks = _ASKED.search(command)
    command = command[: asks.start()] if asks is not None else command
    if _BACKGROUND.search(command):
        return "background"
    if _NEVER_FAILS.search(command) or _OTHER.match(command.rstrip("; ").rpartition(";")[2].strip()):
        return "other"
    first, *others = _PIPE.split(command)
    if not _STARTS.search(first):
        return "other" if others else "unknown"
    return "piped" if others else "job"
