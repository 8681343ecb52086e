"""Names that may stand in a command: those of hosts, and nothing that a shell, kubectl or Slurm takes for more."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncclcheck.model.formats.host_words import host_words, is_host_word
from tests.report.hostile import NO_HOST_WORDS


@pytest.mark.parametrize(
    "name", ["node01", "gpu-1.cluster.example", "NODE_1", "10.0.0.7", "fd00::7", "allnodes", "_gateway"]
)
def test_names_and_addresses_of_hosts_are(name: str) -> None:
    assert is_host_word(name)


@pytest.mark.parametrize("name", NO_HOST_WORDS)
def test_what_means_something_else_is_not(name: str) -> None:
    assert not is_host_word(name)


@given(st.lists(st.text()))
def test_they_are_one_word_of_a_shell_and_no_option(names: list[str]) -> None:
    words = host_words(names)
    assert shlex.split(" ".join(words)) == words
    assert [word for word in words if word.startswith("-") or shlex.quote(word) != word] == []
