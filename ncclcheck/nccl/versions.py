"""NCCL versions as numbers, and the versions at which a rule that a prediction needs has changed."""

from __future__ import annotations

import re
from typing import TypeAlias

from ncclcheck.model.errors import UsageError

Version: TypeAlias = tuple[int, int, int]

OLDEST = "2.18.1"
NEWEST = "2.32.3"

CONF_FILE_VARIABLE_SINCE: Version = (2, 23, 0)  # NCCL_CONF_FILE is read
NO_INTERFACE_IS_USAGE_ERROR_SINCE: Version = (2, 24, 0)  # result code 5 instead of 3
RUNNING_NEEDED_SINCE: Version = (2, 28, 0)  # IFF_RUNNING; virbr left for last; first public tag 2.28.3
ENV_PLUGIN_SINCE: Version = (2, 28, 0)  # libnccl-env.so may override every variable
COMM_ID_INVERTED_SINCE: Version = (2, 29, 0)  # first read tag 2.29.2
COMM_ID_INVERTED_BEFORE: Version = (2, 30, 0)  # mended in 2.30.3, the first read tag of 2.30
HOME_VARIABLE_SINCE: Version = (2, 30, 0)  # ~/.nccl.conf is under $HOME instead of the passwd home
CARRIAGE_RETURN_STRIPPED_SINCE: Version = (2, 30, 0)  # first read tag 2.30.3

_DOTTED = re.compile(r"\s*\(?(\d{1,4})[.,]\s*(\d{1,4})(?:[.,]\s*(\d{1,4}))?\)?(?:[+-].*)?\s*")
_FIRST_CODE_WITH_TWO_DIGIT_MINOR = 20900  # NCCL_VERSION(X, Y, Z) of nccl.h: 2.9.0 and later
_CODE = re.compile(r"\s*(\d{4,6})\s*")


def parse(text: str) -> Version:
    """The version in `text`: `2.28.9`, `2.28`, `2.28.9+cuda12.9`, `(2, 28, 9)`, or NCCL's own number `22809`.

    Raises UsageError with one sentence when it is none of these. The number is NCCL_VERSION of `nccl.h`.
    """
    if match := _DOTTED.fullmatch(text):
        major, minor, patch = (int(part or 0) for part in match.groups())
        return major, minor, patch
    if match := _CODE.fullmatch(text):
        code = int(match.group(1))
        major_unit = 10000 if code >= _FIRST_CODE_WITH_TWO_DIGIT_MINOR else 1000
        return code // major_unit, code % major_unit // 100, code % 100
    raise UsageError(f"{text!r} is no NCCL version: a version looks like 2.28.9")


def is_version(text: str) -> bool:
    """True if `parse` takes it."""
    return bool(_DOTTED.fullmatch(text) or _CODE.fullmatch(text))


def is_comm_id_inverted(version: Version) -> bool:
    """True for 2.29: its IPv4 comparison for NCCL_COMM_ID takes the first interface that is NOT in the subnet."""
    return COMM_ID_INVERTED_SINCE <= version < COMM_ID_INVERTED_BEFORE
