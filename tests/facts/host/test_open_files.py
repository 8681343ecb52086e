"""Node 0 can hold as many connections as there are processes, or says so before anybody joins."""

from __future__ import annotations

import resource
from collections.abc import Iterator

import pytest

from ncclcheck.facts.host.limits import read_limits
from ncclcheck.facts.host.open_files import raise_file_limit, restore_file_limit


@pytest.fixture(autouse=True)
def limits() -> Iterator[tuple[int, int]]:
    """A soft limit of 1024, as most shells have it."""
    found = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, found[1]))
    yield found
    restore_file_limit()
    resource.setrlimit(resource.RLIMIT_NOFILE, found)


def said_of(processes: int) -> list[str]:
    said: list[str] = []
    raise_file_limit(processes, said.append)
    return said


def test_the_soft_limit_is_raised_for_many_processes_and_put_back(limits: tuple[int, int]) -> None:
    assert said_of(2000) == []
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (4512, limits[1])
    assert read_limits().nofile == 1024  # what a job finds
    restore_file_limit()
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (1024, limits[1])


def test_where_it_is_enough_nothing_is_changed() -> None:
    assert said_of(4) == []
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 1024


def test_a_hard_limit_that_is_too_small_is_told(limits: tuple[int, int]) -> None:
    hard = limits[1]
    (said,) = said_of(hard)
    assert f"the hard limit of open files is {hard}" in said
    assert f"need {hard + 512} on node 0" in said
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == hard
