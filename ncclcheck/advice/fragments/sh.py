"""The advice as lines for a POSIX shell."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from ncclcheck.advice.fragments.lines import explained
from ncclcheck.model.report import Advice, Setting


def render_sh(advice: Advice) -> str:
    """Text to `eval` in sh on every node: export and unset lines, comments that give the proof.

    Values that differ between nodes are chosen by `uname -n`, the name a node's report has. Every word that came from
    elsewhere is quoted, or a comment on one line.
    """
    return "\n".join(explained(advice, _lines)) + "\n"


def command(setting: Setting) -> str:
    """Return the line that sets or unsets the variable, whatever the host."""
    value = setting.value
    return f"unset {setting.name}" if value is None else f"export {setting.name}={quoted(value)}"


def on_its_hosts(setting: Setting) -> str:
    """Return the line that sets or unsets it only where `uname -n` is one of its hosts."""
    hosts = "|".join(quoted(host) for host in setting.hosts)
    return f'case "$(uname -n)" in {hosts}) {command(setting)} ;; esac'


def quoted(value: str) -> str:
    """One word that is exactly this value in any POSIX shell, always quoted: zsh reads a bare `=eth0` as a path.

    What is not printable ASCII is written as octal numbers for printf(1), so that no encoding, locale or terminal
    changes it on its way.
    """
    body = value.rstrip("\n")
    if all(" " <= character <= "~" for character in body):
        text = shlex.quote(value)
        return f"'{value}'" if text == value else text
    octal = "".join(f"\\{byte:03o}" for byte in body.encode("utf-8", "surrogateescape"))
    ends = value[len(body) :]  # the shell cuts them from what printf prints
    return f"\"$(printf '{octal}')\"" + (f"'{ends}'" if ends else "")


def _lines(setting: Setting) -> Iterator[str]:
    yield on_its_hosts(setting) if setting.hosts else command(setting)
