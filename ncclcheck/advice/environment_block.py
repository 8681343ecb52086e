"""The advice as lines for a POSIX shell, and as JSON."""

from __future__ import annotations

import re
import shlex

from ncclcheck.model.codec import encode_pretty
from ncclcheck.model.report import Advice, Setting

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def render_sh(advice: Advice) -> str:
    """Text to `eval` in sh on every node: export and unset lines, comments that give the proof.

    Values that differ between nodes are chosen by `uname -n`, the name a node's report has. Every word that came from
    elsewhere is quoted, or a comment on one line.
    """
    lines: list[str] = []
    seen_reasons: set[str] = set()
    for setting in advice.env:
        reason = f"{setting.why}. Proof ({setting.proof}): {setting.evidence}"
        if reason not in seen_reasons:
            seen_reasons.add(reason)
            lines.append(_comment(reason))
        lines.append(_line(setting))
    lines += [_comment(note) for note in advice.notes]
    if not advice.env:
        lines.insert(0, _comment("ncclcheck: nothing to set"))
    return "\n".join(lines) + "\n"


def render_json(advice: Advice) -> str:
    """The advice as in the report's JSON, with a final newline."""
    return encode_pretty(advice) + "\n"


def _line(setting: Setting) -> str:
    if not _NAME.fullmatch(setting.name) or (setting.value is not None and "\0" in setting.value):
        return _comment(f"left out: {setting.name!r} cannot be set in a shell")
    value = setting.value
    command = f"unset {setting.name}" if value is None else f"export {setting.name}={_quote(value)}"
    if not setting.hosts:
        return command
    hosts = "|".join(shlex.quote(host) for host in setting.hosts)
    return f'case "$(uname -n)" in {hosts}) {command} ;; esac'


def _quote(value: str) -> str:
    """Safe in sh, and in zsh too, which takes an unquoted `=eth0` for the path of a command."""
    quoted = shlex.quote(value)
    return f"'{value}'" if quoted == value else quoted


def _comment(text: str) -> str:
    """One line: control characters would end the comment, or speak to the terminal."""
    return "# " + "".join(character if character.isprintable() else "?" for character in text)
