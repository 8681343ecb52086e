"""Leaves a small file in a folder for a moment, and reports which files of other nodes appear there.

A separate process does every step, so that a dead mount blocks only that process. It also removes the file when this
process is killed. Nothing else in the folder is touched.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Mapping
from typing import Any

from ncclcheck import timeouts
from ncclcheck.facts.bounded_call import missing_for
from ncclcheck.facts.child import end_child, read_child, surviving_command
from ncclcheck.facts.text_files import readable
from ncclcheck.model.fact import Fact, Missing, Why


class Mark:
    """This node's mark in one folder. `close` must follow. State: the process that keeps the mark."""

    def __init__(self, folder: str, name: str, content: str, lifetime_s: float) -> None:
        self._folder, self._output = folder, bytearray()
        self._process: subprocess.Popen[bytes] | Missing
        ours, self._stdin = os.pipe()
        try:
            self._process = subprocess.Popen(
                surviving_command(
                    "ncclcheck.facts.storage.marks_child", [folder, name, content, str(lifetime_s)]
                ),
                stdin=ours,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            self._process = missing_for(error, readable(folder))
        finally:
            os.close(ours)

    def written(self, deadline_s: float) -> Missing | None:
        """Return None once the mark is there, or why it is not."""
        answer = self._answer("wrote", deadline_s)
        if isinstance(answer, Missing):
            return answer
        if answer is None:
            return None
        why: Why = answer[0]
        return Missing(why, readable(answer[1]))

    def seen(self, marks: Mapping[str, str], seconds: float) -> Fact[tuple[str, ...]]:
        """Return which of these marks (name -> content) were there within the time."""
        if isinstance(self._process, Missing):
            return self._process
        order = json.dumps({"marks": dict(marks), "seconds": seconds}).encode() + b"\n"
        try:
            os.write(self._stdin, order)
        except OSError as error:
            return missing_for(error, readable(self._folder))
        names = self._answer("seen", seconds + timeouts.MARK_INNER_S)
        return names if isinstance(names, Missing) else tuple(name for name in names if name in marks)

    def close(self) -> str:
        """Remove the mark, and return why it could not be removed; empty: it is gone."""
        os.close(self._stdin)
        if isinstance(self._process, Missing):
            return ""
        answer = self._answer("left", timeouts.MARK_REMOVE_S)
        gone = end_child(self._process)
        if not isinstance(answer, Missing):
            return readable(str(answer))
        left = "" if gone else f"; process {self._process.pid} survived SIGKILL and was left behind"
        return f"{readable(self._folder)}: {answer.detail}{left}"

    def _answer(self, word: str, deadline_s: float) -> Any:
        """Return what the process said under that word; Missing when it did not in time."""
        if isinstance(self._process, Missing):
            return self._process
        end = time.monotonic() + deadline_s
        if word not in _words(self._output):
            output: dict[int, bytearray] = {}
            read_child(self._process, output, end, lambda data: word in _words(self._output + data))
            self._output += next(iter(output.values()), b"")
        words = _words(self._output)
        if word in words:
            return words[word]
        why: Why = "timeout" if time.monotonic() >= end else "error"
        return Missing(why, f"{readable(self._folder)} did not answer within {deadline_s:.1f} s")


def _words(output: bytes | bytearray) -> dict[str, Any]:
    """Return what whole lines say."""
    found: dict[str, Any] = {}
    for line in bytes(output).split(b"\n")[:-1]:
        found |= json.loads(line)
    return found
