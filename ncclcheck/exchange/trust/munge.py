"""The run's key by way of munge, where that answers: a credential that only this user can read, on this cluster.

Source: munge(1), unmunge(1) 0.5.15: `munge` reads the payload from standard input; `unmunge` prints it with the user
who encoded it. A credential that was read before on this node, or is old, is still printed, with another exit status:
freshness comes from the challenges of both ends, not from munge.
"""

from __future__ import annotations

import base64
import binascii
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping

from ncclcheck import timeouts
from ncclcheck.exchange.trust.run_key import RunKey, new_key
from ncclcheck.exchange.trust.trust import Trust
from ncclcheck.model.fact import Missing
from ncclcheck.model.launch import Launch

BY = "munge"
_LONGEST_CREDENTIAL = 2048
_PAYLOAD = "ncclcheck-key-1 "
_REPLAYED, _EXPIRED = 17, 15  # exit statuses of unmunge (munge.h, EMUNGE_CRED_*)


def answers() -> bool:
    """Return whether munge makes and reads credentials on this node."""
    if not shutil.which("munge") or not shutil.which("unmunge"):
        return False
    made = credential_of(new_key(BY))
    return not isinstance(made, Missing) and isinstance(key_in_credential(made), RunKey)


def credential_of(key: RunKey) -> str | Missing:
    """Return the key as a credential that only this user can read."""
    payload = _PAYLOAD + base64.b64encode(key.secret).decode()
    made = _run(["munge", f"--restrict-uid={os.geteuid()}"], payload)
    if isinstance(made, Missing):
        return made
    status, text = made
    if status != 0 or len(text) > _LONGEST_CREDENTIAL:
        return Missing("error", f"munge ended with status {status}")
    return text.strip()


def key_in_credential(credential: str) -> RunKey | Missing:
    """Return the key that this very user put into the credential, on a node of this cluster."""
    if not shutil.which("unmunge"):
        return Missing("denied", "node 0 has a key from munge, which is not installed on this node")
    words = ["unmunge", "--keys=UID", "--metadata=-", "--output=-", "--numeric"]
    read = _run(words, credential[:_LONGEST_CREDENTIAL])
    if isinstance(read, Missing):
        return Missing("denied", f"munge does not answer on this node: {read.detail}")
    status, text = read
    head, _, payload = text.partition(_PAYLOAD)
    if status not in (0, _REPLAYED, _EXPIRED) or not payload:
        return Missing("denied", f"munge on this node does not take node 0's credential (status {status})")
    user = next((line.split() for line in head.splitlines() if line.startswith("UID")), [])
    if len(user) < 2 or user[1].strip("()") != str(os.geteuid()):  # noqa: PLR2004
        return Missing("denied", "node 0's credential of munge is of another user")
    try:
        return RunKey(base64.b64decode(payload.strip(), validate=True), BY)
    except (binascii.Error, ValueError):
        return Missing("denied", "node 0's credential of munge holds no key")


def trust_of(key: RunKey | None, environ: Mapping[str, str], launch: Launch) -> Trust:
    """Return what a process of the run trusts: the key that it was given, or, under Slurm, one by way of munge.

    Node 0 makes that key; the others find it where they join.
    """
    has_none = key is None and "SLURM_JOB_ID" in environ and launch.nnodes > 1 and not launch.shared_store
    if not has_none or not answers():
        return Trust(key)
    leads = launch.node_rank == 0 and launch.is_agent
    return Trust(new_key(BY) if leads else None, asks_munge=True)


def credential_for(key: RunKey | None) -> Callable[[], str]:
    """Return what makes the credential for callers; it gives an empty one where the key is not from munge."""
    return Credentials(key).current if key is not None and key.by == BY else str


class Credentials:
    """The credential for callers, made anew before it is old. State: the last one, and since when."""

    def __init__(self, key: RunKey) -> None:
        self._key = key
        self._made, self._at = "", 0.0

    def current(self) -> str:
        """Return a credential that callers can read now; empty while munge does not answer."""
        if not self._made or time.monotonic() - self._at > timeouts.MUNGE_FRESH_S:
            made = credential_of(self._key)
            self._at = time.monotonic()
            self._made = self._made if isinstance(made, Missing) else made
        return self._made


def _run(argv: list[str], text: str) -> tuple[int, str] | Missing:
    try:
        ended = subprocess.run(
            argv, input=text.encode(), capture_output=True, timeout=timeouts.MUNGE_S, check=False
        )
    except subprocess.TimeoutExpired:
        return Missing("timeout", f"{argv[0]} took longer than {timeouts.MUNGE_S:.0f} s")
    except OSError as error:
        return Missing("error", f"{argv[0]}: {error.strerror or error}")
    return ended.returncode, ended.stdout.decode(errors="replace")
