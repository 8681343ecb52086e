"""The run's key by way of the real munge, and what is said where it does not answer."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ncclcheck.exchange.join.knock import PROTOCOL, KnockMessage
from ncclcheck.exchange.trust.datagrams import DatagramSeal
from ncclcheck.exchange.trust.munge import Credentials, answers, credential_of, key_in_credential, trust_of
from ncclcheck.exchange.trust.run_key import RunKey, new_key
from ncclcheck.exchange.trust.trust import Trust
from ncclcheck.model.codec import encode
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import MasterPath
from ncclcheck.model.launch import Launch
from ncclcheck.model.snapshot import Knock

SLURM = {"SLURM_JOB_ID": "7"}
NODE_0 = Launch("slurm", 0, 2, 0, 1, 0, 2, "node1", 29500)


@pytest.fixture
def munged(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A munged of the test, which `munge` and `unmunge` find."""
    if shutil.which("munged") is None:
        pytest.skip("munged is not installed (Debian package munge)")
    folder = Path("/tmp") / f"munge-{secrets.token_hex(4)}"
    folder.mkdir(mode=0o755)
    try:
        key = folder / "key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o600)
        files = [f"--{name}-file={folder}/{name}" for name in ("key", "pid", "log", "seed")]
        daemon = subprocess.Popen(["munged", "--foreground", "--force", f"--socket={folder}/socket", *files])
        for name in ("munge", "unmunge"):
            program = folder / "bin" / name
            program.parent.mkdir(exist_ok=True)
            program.write_text(f'#!/bin/sh\nexec {shutil.which(name)} --socket={folder}/socket "$@"\n')
            program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}/bin:{os.environ['PATH']}")
        until = time.monotonic() + 20
        while not (folder / "socket").exists():
            assert time.monotonic() < until, (folder / "log").read_text()
            time.sleep(0.02)
        yield folder
        daemon.terminate()
        daemon.wait(20)
    finally:
        shutil.rmtree(folder)


@pytest.mark.usefixtures("munged")
def test_the_same_user_reads_the_key_as_often_as_it_likes() -> None:
    key = new_key("munge")
    credential = Credentials(key).current()
    assert key.secret.hex() not in credential
    for _ in range(3):
        assert key_in_credential(credential) == key
    assert answers()


@pytest.mark.usefixtures("munged")
def test_the_shortest_knock_of_a_node_is_long_enough_for_a_real_credential_in_answer() -> None:
    nowhere = Missing("absent")
    way = MasterPath("n", 1, ("::1",), False, nowhere, nowhere, "refused")
    knock = encode(KnockMessage(PROTOCOL, "", True, Knock("n", 1, way)))
    key = new_key("munge")
    answer = DatagramSeal(Trust(key), "", Credentials(key).current).received(knock, "10.0.0.2").answer
    assert key_in_credential(answer.decode().removeprefix("munge ")) == key
    assert len(answer) < 2 * len(knock)


@pytest.mark.usefixtures("munged")
def test_a_damaged_credential_is_refused() -> None:
    credential = credential_of(new_key("munge"))
    assert isinstance(credential, str)
    for wrong in ("", "MUNGE:abc:", credential[:-20] + "A" * 19 + ":"):
        found = key_in_credential(wrong)
        assert isinstance(found, Missing)
        assert found.missing == "denied"


@pytest.mark.usefixtures("munged")
def test_under_slurm_node_0_makes_the_key_and_the_others_ask_for_it() -> None:
    trust = trust_of(None, SLURM, NODE_0)
    assert isinstance(trust.key, RunKey)
    assert trust.authentication().by == "munge"
    other = trust_of(None, SLURM, Launch("slurm", 1, 2, 0, 1, 1, 2, "node1", 29500))
    assert (other.key, other.asks_munge) == (None, True)
    given = new_key("--key-file")
    assert trust_of(given, SLURM, NODE_0).key == given
    assert trust_of(None, {}, NODE_0).key is None


def test_without_munge_there_is_no_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not answers()
    trust = trust_of(None, SLURM, NODE_0)
    assert (trust.key, trust.asks_munge) == (None, False)
    found = key_in_credential("MUNGE:abc:")
    assert isinstance(found, Missing)
    assert "not installed" in found.detail


def test_a_munge_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("munge", "unmunge"):
        (tmp_path / name).write_text("#!/bin/sh\nexec sleep 60\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr("ncclcheck.timeouts.MUNGE_S", 0.2)
    found = credential_of(new_key("munge"))
    assert isinstance(found, Missing)
    assert found.missing == "timeout"
