"""The key of a run, as the user gives it: `--key-file`, or NCCLCHECK_KEY."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ncclcheck.cli.files import read_bytes
from ncclcheck.exchange.trust.run_key import LEAST_BYTES, MOST_BYTES, RunKey
from ncclcheck.model.errors import UsageError

VARIABLE = "NCCLCHECK_KEY"


def given_key(option_values: Mapping[str, Any], environ: Mapping[str, str]) -> RunKey | None:
    """Return the key of --key-file, else that of NCCLCHECK_KEY; None where neither is given. Raises UsageError."""
    if option_values.get("from_") or option_values.get("image"):
        return None  # no other process joins
    file = option_values.get("key_file")
    if file is None:
        text = environ.get(VARIABLE, "")
        return _key(text.encode(errors="surrogateescape"), VARIABLE, VARIABLE) if text else None
    _refuse_public(file)
    return _key(read_bytes(file, "--key-file", MOST_BYTES), "--key-file", f"--key-file {file}")


def _key(data: bytes, by: str, where: str) -> RunKey:
    secret = data.strip()
    if not LEAST_BYTES <= len(secret) <= MOST_BYTES:
        raise UsageError(
            f"{where}: a key of {len(secret)} bytes, expected {LEAST_BYTES} to {MOST_BYTES}: "
            "'openssl rand -hex 32' makes one"
        )
    return RunKey(secret, by)


def _refuse_public(file: str) -> None:
    """Raise UsageError where others than the owner can read the file, or it is of another user.

    root may own it, and let the user's group read it: so Kubernetes mounts a secret.
    """
    try:
        found = Path(file).stat()
    except (OSError, ValueError):
        return  # reading it says what is wrong
    user = os.geteuid()
    if found.st_uid not in (0, user):
        raise UsageError(f"--key-file {file}: it belongs to another user (uid {found.st_uid})")
    allowed = stat.S_IRWXU | (stat.S_IRGRP if found.st_uid == 0 and user != 0 else 0)
    if stat.S_ISREG(found.st_mode) and found.st_mode & 0o777 & ~allowed:
        mode = stat.S_IMODE(found.st_mode)
        raise UsageError(f"--key-file {file}: others may read it (mode {mode:04o}): chmod 600 {file}")
