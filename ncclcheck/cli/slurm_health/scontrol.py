"""Slurm's own command, the only one that ncclcheck runs to change something, and only with `--slurm-health`.

Source: scontrol(1) of Slurm 22.05 to 25.05: `show nodes --oneliner` prints a line per node: `NodeName=`, `State=` (a
base state and flags, joined by `+`, with a mark such as `*` behind) and `Reason=TEXT [USER@TIME]`.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Sequence

from ncclcheck.cli.slurm_health.decision import SlurmNode
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.model.fact import Missing
from ncclcheck.timeouts import SCONTROL_S

_NAME = re.compile(r"(?:^|\s)NodeName=(\S+)")
_STATE = re.compile(r"\sState=(\S+)")
_REASON = re.compile(r"\sReason=(.*?) \[[^\s\]]*@([^\s\]]*)\]")
_REASON_ALONE = re.compile(r"\sReason=(.*)")
_MARKS = "*~#!%$@^-"
_LONGEST_REASON = 200


def shown_nodes(deadline: Deadline, name: str = "") -> tuple[SlurmNode, ...] | Missing:
    """Return the node of that name, or all nodes, as slurmctld has them."""
    words = ["scontrol", "show", "--oneliner", *(["node", name] if name else ["nodes"])]
    answer = _run(words, deadline)
    if isinstance(answer, Missing):
        return answer
    nodes = tuple(node for line in answer.splitlines() if (node := read_node(line)) is not None)
    return nodes or Missing("error", f"{shlex.join(words)} shows no node: {answer[:200]!r}")


def read_node(line: str) -> SlurmNode | None:
    """Return the node that a line of `scontrol show nodes --oneliner` describes; None where it describes none."""
    name, state = _NAME.search(line), _STATE.search(line)
    if name is None or state is None:
        return None
    states = frozenset(part.rstrip(_MARKS).upper() for part in state[1].split("+"))
    if match := _REASON.search(line):
        return SlurmNode(name[1], states, match[1].strip(), match[2])
    alone = _REASON_ALONE.search(line)
    return SlurmNode(name[1], states, alone[1].strip() if alone else "")


def drain_words(name: str, reason: str) -> list[str]:
    """Return the command line that drains a node."""
    return ["scontrol", "update", f"NodeName={name}", "State=DRAIN", f"Reason={harmless(reason)}"]


def resume_words(name: str) -> list[str]:
    """Return the command line that resumes a node."""
    return ["scontrol", "update", f"NodeName={name}", "State=RESUME"]


def harmless(reason: str) -> str:
    """Return the reason on one line of ASCII, without what scontrol or a reader of its output takes for more."""
    text = " ".join(reason.encode("ascii", "replace").decode().replace("=", ":").split())
    text = "".join(letter for letter in text if letter.isprintable() and letter not in "\"'`\\[]")
    return text[:_LONGEST_REASON]


def update(words: Sequence[str], deadline: Deadline) -> Missing | None:
    """Run the command line; return why it failed, or None."""
    answer = _run(words, deadline)
    return answer if isinstance(answer, Missing) else None


def _run(words: Sequence[str], deadline: Deadline) -> str | Missing:
    try:
        done = subprocess.run(
            list(words),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=deadline.left(SCONTROL_S),
            check=False,
            env={**os.environ, "LC_ALL": "C"},
        )
    except subprocess.TimeoutExpired:
        return Missing("timeout", f"{shlex.join(words)}: no answer")
    except OSError as error:
        return Missing("error", f"{words[0]}: {error.strerror}")
    stdout = done.stdout.decode("utf-8", "replace")
    if done.returncode != 0:
        why = " ".join((done.stderr.decode("utf-8", "replace") or stdout).split())[:300]
        return Missing("error", f"{shlex.join(words)}: exit {done.returncode}: {why}")
    return stdout
