"""Whose lines follow: a heading, a shell's prompt or a field names the host that the next lines are about.

A person who collects output of several nodes writes such headings (`=== gpu07 dmesg ===`, `### ssh gpu07`,
`[root@gpu07 ~]# ibstat`, `==> gpu07.log <==`); Open MPI's help texts and `kubectl describe` have fields.
"""

from __future__ import annotations

import re
from bisect import bisect_right

_RULES = re.compile(r"^(?!-{2,4}> ?\d)[=#*>-]{2,80} ?(?P<rest>[^=#*\n]{2,120}?)(?: ?[=#*<-]{2,80})?\s*$")
_COMMENT = re.compile(r"^# (?P<rest>(?:(?:worker|rank \d{1,5}) )?(?:node|host|on|from) [^\n]{1,80})$")
_PROMPT = re.compile(
    r"^(?:\([\w.-]{1,40}\) )?\[\w[\w.-]{0,31}@(?P<host>[A-Za-z0-9][\w.-]{0,253}) [^\]\n]{0,80}(?:\]# |\]\$ )|"
    r"^(?:\([\w.-]{1,40}\) )?(?:root|ubuntu|user|admin|ec2-user|centos|azureuser|opc|nvidia)@"
    r"(?P<named>[A-Za-z0-9][\w.-]{0,253}):[^\s$#]{0,200}[$#] |"
    r"^(?:\([\w.-]{1,40}\) )?\w[\w.-]{0,31}@(?P<home>[A-Za-z][\w.-]{0,253})"
    r"(?::~\$ |:~# |:~/[^\s$#]{0,200}\s{0,8}[$#] )|"
    r"^\w[\w.-]{0,31}@(?P<zsh>[A-Za-z][\w.-]{0,253}) ~ % |"
    r"^(?:[$>#] |\+ )?ssh (?:-\S{1,80} ){0,4}(?:\w{1,32}@)?(?P<reached>[A-Za-z][\w.-]{1,253}) \S"
)
_OPTIONS = (
    r"(?: {1,3}(?:-[ncl]|--namespace|--container|--selector)[ =]\S{1,63}| {1,3}-\S{1,40}){0,4}"  # of kubectl
)
_SHORT_PROMPT = re.compile(
    r"^\[(?P<host>[A-Za-z][\w.-]{0,62}) [~/][^\]\n]{0,80}(?:\]# |\]\$ )|"
    r"^(?P<named>[A-Za-z][\w.-]{1,62}\d)(?:\$ |# |> )(?:cat |dmesg|nvidia-smi|ibstat|ibv_|systemctl|journalctl|ping |"
    r"tcpdump|ethtool|lsmod|ulimit|getent|free -|lspci|show_gids|ibdev2netdev|py-spy|ip route|"
    r"ip -|ip addr|ss -|df -|ls -)|"
    rf"^(?:[$>#] |\+ )?kubectl{_OPTIONS} {{1,3}}(?:logs|describe|get|exec)(?! pods? -){_OPTIONS} {{1,3}}(?:pods?[ /])?"
    r"(?P<pod>[a-z0-9][a-z0-9.-]{2,252}-[a-z0-9.-]{1,60})\b"
)
_OF_A_POD = re.compile(
    rf"kubectl{_OPTIONS} {{1,3}}(?:logs|describe|exec)(?! pods? -){_OPTIONS} {{1,3}}(?:pods?[ /])?"
    r"(?P<pod>[a-z0-9][a-z0-9.-]{2,252}-[a-z0-9.-]{1,60})\b"
)  # behind a prompt: the lines are the pod's, not those of the machine where it was typed
_FIELD = re.compile(
    r"^\s{0,8}(?:Local host|Host|Hostname|Host name|Node name|nodename|hostname)\s{0,12}[:=]\s{0,12}"
    r"(?P<host>[A-Za-z][\w.-]{0,253})\s*$"
)
_DESCRIBED = re.compile(r"^Name:  {1,40}(?P<host>[a-z0-9][\w.-]{0,253})\s*$")
_TOKEN = re.compile(
    r"(?:\b(?P<key>ssh|host|hostname|node|pod|on|from|of)[ :=/]{1,2})?(?P<name>[A-Za-z0-9][\w.-]{0,62})",
    re.IGNORECASE,
)
_KEYS = frozenset({"ssh", "host", "hostname", "node", "pod"})
_CLUSTER_SUFFIX = re.compile(r"\.[\w.-]+\.svc(?:\.cluster\.local)?\.?$")  # of a pod or a headless service
_FILE = re.compile(r"\.(?:log|out|err|txt)$")
_ADDRESS = re.compile(
    r"(?:^|@ ?|\b(?:node|host|worker|on|from|of|ip)[ :=]{1,2}|\()(?P<ip>\d{1,3}(?:\.\d{1,3}){3})"
    r"(?:\)?\s*$|:/|\.(?:log|out|err|txt)\b)",
    re.IGNORECASE,
)
_LETTERED = re.compile(r"[A-Za-z]{2,20}-[a-z]")  # vm-a, vm-b
_DIGITS = re.compile(r"\d+")
_NO_HOSTS = frozenset(
    {
        "", "of", "the", "a", "in", "at", "all", "each", "every", "one",
        "rank", "step", "stage", "phase", "gpu", "gpus", "cuda", "nccl", "mlx", "test",
        "attempt", "python", "py",
        "torch", "v", "run", "exp", "job", "slurm", "h", "b", "l", "v.", "rtx", "ipv", "eth", "ib", "ens", "xid",
        "part", "log", "train", "epoch", "iter", "iteration", "device", "layer", "round", "step_", "mlx_", "x_",
        "section", "case", "trial", "task", "local_rank", "version", "nodes", "ranks", "x", "utc", "am", "pm",
        "begin", "end", "dmesg", "size", "line", "lines", "hca", "nic", "port", "sm_", "fp", "bf", "int",
    }
)  # fmt: skip
PATTERNS = (
    r"== |## |\*\* |==> |--- |# node|# host|# on |# from |# worker |# rank ",
    _SHORT_PROMPT.pattern,
    _PROMPT.pattern,
    _FIELD.pattern,
    _DESCRIBED.pattern,
)
_MOST_SECTIONS = 65_536  # of a file
_FIELD_LINES = 12  # a field speaks for the lines of its own paragraph


class Sections:
    """The host that the lines here are about, as the last heading said."""

    def __init__(self) -> None:
        self._host = ""
        self._until: int | None = None
        self._begun: list[int] = []  # the first line of each section of the file, and the hosts of these
        self._hosts: list[tuple[str, int | None]] = []

    def forget(self) -> None:
        """Nothing that a heading of one file said holds in the next."""
        self._host, self._until = "", None
        self._begun, self._hosts = [], []

    def host_of(self, line: int) -> str:
        """Return the host of that line; empty where no heading named one."""
        begun = bisect_right(self._begun, line)
        host, until = self._hosts[begun - 1] if begun else ("", None)
        return "" if until is not None and line > until else host

    def read(self, text: str, line: int) -> None:
        """Take a line that may be a heading."""
        before = self._host, self._until
        self._read(text, line)
        if (self._host, self._until) != before and len(self._begun) < _MOST_SECTIONS:
            self._begun.append(line)
            self._hosts.append((self._host, self._until))

    def _read(self, text: str, line: int) -> None:
        if match := _FIELD.match(text):
            self._host, self._until = match["host"], line + _FIELD_LINES
        elif match := _DESCRIBED.match(text):
            self._host, self._until = _CLUSTER_SUFFIX.sub("", match["host"]), None
        elif (match := _PROMPT.match(text)) and (asked := _OF_A_POD.match(text, match.end())):
            self._host, self._until = asked["pod"], None
        elif match := _PROMPT.match(text):
            self._host, self._until = (
                match["host"] or match["named"] or match["zsh"] or match["home"] or match["reached"],
                None,
            )
        elif match := _SHORT_PROMPT.match(text):
            self._host, self._until = match["host"] or match["named"] or match["pod"], None
        elif match := _COMMENT.match(text):
            self._host, self._until = _host_in(match["rest"]) or self._host, None
        elif match := _RULES.match(text):
            self._host, self._until = _host_in(match["rest"]), None


def _host_in(heading: str) -> str:
    """Return the name in the heading that is one of a host; a number only where no name is; empty where neither is."""
    if _LETTERED.fullmatch(heading):
        return heading
    number = ""
    for match in _TOKEN.finditer(heading):
        name = _FILE.sub("", match["name"])
        stem = _DIGITS.sub("", name).strip("-_.").lower()
        has_number = any(letter.isdigit() for letter in name) and name[0].isalpha()
        key = (match["key"] or "").lower()
        is_counted = (
            stem in _NO_HOSTS and key not in _KEYS and not re.fullmatch(r"(?:gpu|nodes?)-?\d{2,4}", name)
        )
        if (
            is_counted
            or stem in ("of", "the", "in", "at", "all", "each", "every", "one")
            or ("." in name and name.rpartition(".")[2] in ("py", "sh", "json", "yaml", "pt"))
        ):
            continue
        if name.isdecimal() and key in _KEYS:
            number = number or name
        elif has_number or (key in _KEYS and "." not in match["name"]):
            return name
    address = _ADDRESS.search(heading)
    return address["ip"] if address else number
