"""One setting as a line that a shell takes, with its reason and proof as a comment."""

from __future__ import annotations

import shlex

from ncclcheck.model.report import Setting

_PROOF = {
    "measured": "measured",
    "asked": "proven by asking NCCL",
    "rule": "by rule, not tried here",
}


def export(name: str, value: str | None) -> str:
    """Return the line that sets `name`, or unsets it for None.

    Quoted even where sh would not need it: zsh reads an unquoted `=eth0` as "the path of the command eth0".
    """
    if value is None:
        return f"unset {name}"
    quoted = shlex.quote(value)
    return f"export {name}='{value}'" if quoted == value else f"export {name}={quoted}"


def comment(setting: Setting) -> str:
    """Why, and what shows that it is right."""
    evidence = f": {setting.evidence}" if setting.evidence else ""
    return f"# {setting.why} ({_PROOF[setting.proof]}{evidence})"
