"""A few of the attacks of `scripts/attacks`: with a key they change nothing, without one they do no harm."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.attacking.campaign import MOST_MB, attacked

pytestmark = [pytest.mark.lab, pytest.mark.slow]


@pytest.mark.parametrize(
    "attack",
    [
        "replay-of-this-run",
        pytest.param("introduced-with-a-guess", marks=pytest.mark.further),
        pytest.param("all-keys-erased", marks=pytest.mark.further),
        pytest.param("refusals-of-keys", marks=pytest.mark.further),
    ],
)
def test_with_a_key_an_attack_changes_nothing(attack: str, tmp_path: Path) -> None:
    run = attacked(attack, keyed=True, log_folder=tmp_path)
    assert (run.codes, run.findings, run.harm) == ((0, 0, 0), ((), (), ()), ()), run.text()
    if attack.startswith("replay"):
        assert list(tmp_path.iterdir()), "nothing was seen on the wire, so nothing was replayed"


@pytest.mark.further
def test_without_a_key_who_is_spoken_for_is_not_accused(tmp_path: Path) -> None:
    run = attacked("forged-hello", keyed=False, log_folder=tmp_path)
    assert not run.hung
    assert run.harm == ()
    # Who came first, the stranger or node2, decides whether node2 is counted at all.
    named = {slug for node in run.findings for slug in node}
    assert {"place-contested"} <= named <= {"place-contested", "node-silent"}, run.text()


@pytest.mark.parametrize(
    "attack",
    [
        "measuring-all-keys-erased",
        pytest.param("measuring-all-keys-garbled", marks=pytest.mark.further),
        pytest.param("isolating-all-keys-erased", marks=pytest.mark.further),
        pytest.param("isolating-first-answers-erased", marks=pytest.mark.further),
    ],
)
def test_without_a_key_nobody_is_accused_of_messages_that_a_stranger_spoils(
    attack: str, tmp_path: Path
) -> None:
    run = attacked(attack, keyed=False, log_folder=tmp_path)
    assert not run.hung
    assert run.harm == ()
    assert {slug for node in run.findings for slug in node} == {"store-changed"}, run.text()
    assert set(run.codes) == {3}, run.text()


@pytest.mark.further
def test_without_a_key_a_store_that_is_filled_takes_no_more_memory(tmp_path: Path) -> None:
    run = attacked("many-huge-values", keyed=False, log_folder=tmp_path)
    assert not run.hung
    assert run.memory_mb < MOST_MB, run.text()
