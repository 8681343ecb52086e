"""The `--expect` policy: what the operator demands of a run, written as TOML."""

from __future__ import annotations

import difflib
import sys
from typing import Any, Literal

import msgspec
from msgspec import Struct

from ncclcheck.model.errors import UsageError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


class Policy(Struct, frozen=True, forbid_unknown_fields=True):
    """The demands of a policy file; None and empty: nothing demanded. Check names are codes, prefixes or slugs."""

    nodes: int | None = None
    gpus_per_node: int | None = None
    fail_on: Literal["error", "warning", "never"] | None = None
    require: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    demote: tuple[str, ...] = ()
    select: tuple[str, ...] = ()


def parse_policy(text: str, file: str) -> Policy:
    """The policy in `text`. Raises UsageError naming `file` and the line, key or value that is wrong."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:  # its text ends in "(at line 3, column 7)"
        raise UsageError(f"--expect {file}: not valid TOML: {error}") from error
    except RecursionError as error:
        raise UsageError(f"--expect {file}: not valid TOML: nested too deeply") from error
    except ValueError as error:  # a number of thousands of digits, a date that is none
        raise UsageError(f"--expect {file}: not valid TOML: a number or date in it is impossible") from error
    for key in table:
        if key not in Policy.__struct_fields__:
            raise UsageError(f"--expect {file}: unknown key {key!r}{_line_of(key, text)}: {_right_key(key)}")
    policy = _convert(table, file, text)
    for key, (least, most) in _BOUNDS.items():
        value = getattr(policy, key)
        if value is not None and not least <= value <= most:
            raise UsageError(
                f"--expect {file}: {key} = {value}{_line_of(key, text)} is impossible: expected {least} to {most}"
            )
    return policy


_BOUNDS = {"nodes": (1, 65536), "gpus_per_node": (0, 4096)}  # as on the command line
_EXPECTED = {
    "nodes": "a whole number, like 4",
    "gpus_per_node": "a whole number, like 8",
    "fail_on": '"error", "warning" or "never"',
}


def _convert(table: dict[str, Any], file: str, text: str) -> Policy:
    for key, value in table.items():
        try:
            msgspec.convert({key: value}, Policy)
        except msgspec.ValidationError as error:
            expected = _EXPECTED.get(key, 'a list of checks, like ["gpu-count", "NC2"]')
            raise UsageError(
                f"--expect {file}: {key} = {value!r}{_line_of(key, text)}: expected {expected}"
            ) from error
    return msgspec.convert(table, Policy)


def _right_key(key: str) -> str:
    near = difflib.get_close_matches(key.replace("-", "_").lower(), Policy.__struct_fields__, 1)
    return f"did you mean {near[0]!r}?" if near else f"known are {', '.join(Policy.__struct_fields__)}"


def _line_of(key: str, text: str) -> str:
    """` (line 3)`: where the key is set, as far as its plain spelling at the start of a line tells."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip().strip("[").strip().strip("\"'").startswith(key):
            return f" (line {number})"
    return ""
