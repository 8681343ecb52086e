"""The key of a run, as the user gives it: `--key-file`, or NCCLCHECK_KEY."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ncclcheck.cli.files import read_bytes
from ncclcheck.exchange.trust.run_key import LEAST_BYTES, MOST_BYTES, RefusedKey, RunKey
from ncclcheck.facts.bounded_call import within
from ncclcheck.model.errors import UsageError
from ncclcheck.model.fact import Missing
from ncclcheck.timeouts import USER_FILE_S

VARIABLE = "NCCLCHECK_KEY"


def given_key(option_values: Mapping[str, Any], environ: Mapping[str, str]) -> RunKey | None:
    """Return the key of --key-file, else that of NCCLCHECK_KEY; None where neither is given. Raises UsageError."""
    found = key_or_refusal(option_values, environ)
    if isinstance(found, RefusedKey):
        raise UsageError(found.why)
    return found


def key_or_refusal(
    option_values: Mapping[str, Any], environ: Mapping[str, str]
) -> RunKey | RefusedKey | None:
    """Return the same; where the key is refused, why, for the other nodes to know as well."""
    if option_values.get("from_") or option_values.get("image"):
        return None  # no other process joins
    file = option_values.get("key_file")
    if file is None:
        text = environ.get(VARIABLE, "")
        return _key(text.encode(errors="surrogateescape"), VARIABLE, VARIABLE) if text else None
    where = f"--key-file {file}"
    try:
        key = _key(read_bytes(file, "--key-file", MOST_BYTES), "--key-file", where)
    except UsageError as error:
        return RefusedKey(_why_public(file) or str(error))
    why = _why_public(file)
    return RefusedKey(why, key if isinstance(key, RunKey) else key.key) if why else key


def _key(data: bytes, by: str, where: str) -> RunKey | RefusedKey:
    secret = data.strip()
    if not LEAST_BYTES <= len(secret) <= MOST_BYTES:
        return RefusedKey(
            f"{where}: a key of {len(secret)} bytes, expected {LEAST_BYTES} to {MOST_BYTES}: "
            "'openssl rand -hex 32' makes one"
        )
    return RunKey(secret, by)


def _why_public(file: str) -> str:
    """Return why a file is no secret that others than the owner can read, or of another user; empty where it is one.

    root may own it, and let the user's group read it: so Kubernetes mounts a secret.
    """
    found = within(USER_FILE_S, _status, file)
    if found is None or isinstance(found, Missing):
        return ""  # reading it says what is wrong
    user = os.geteuid()
    if found.st_uid not in (0, user):
        return f"--key-file {file}: it belongs to another user (uid {found.st_uid})"
    allowed = stat.S_IRWXU | (stat.S_IRGRP if found.st_uid == 0 and user != 0 else 0)
    if stat.S_ISREG(found.st_mode) and found.st_mode & 0o777 & ~allowed:
        mode = stat.S_IMODE(found.st_mode)
        return f"--key-file {file}: others may read it (mode {mode:04o}): chmod 600 {file}"
    return ""


def _status(file: str) -> os.stat_result | None:
    try:
        return Path(file).stat()
    except (OSError, ValueError):
        return None
