"""The policy file: read strictly, and every mistake named with its file and line."""

from __future__ import annotations

import pytest

from ncclcheck.model.errors import UsageError
from ncclcheck.model.policy import Policy, parse_policy


def test_a_policy_is_read_as_written() -> None:
    text = """
        nodes = 4
        gpus_per_node = 8
        fail_on = "warning"
        require = ["gpu-count"]
        ignore = ["NC6"]
    """
    assert parse_policy(text, "site.toml") == Policy(4, 8, "warning", ("gpu-count",), ("NC6",))


def test_an_empty_policy_demands_nothing() -> None:
    assert parse_policy("", "site.toml") == Policy()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("nodes = 4\ngpus = = 8", "not valid TOML.*line 2"),
        (
            "nodes = 4\ngpus-per-node = 8",
            r"unknown key 'gpus-per-node' \(line 2\): did you mean 'gpus_per_node'\?",
        ),
        ("colour = 'red'", r"unknown key 'colour' \(line 1\): known are nodes, gpus_per_node"),
        ("nodes = 'four'", r"nodes = 'four' \(line 1\): expected a whole number"),
        ("nodes = true", "expected a whole number"),
        ("nodes = 0", r"nodes = 0 \(line 1\) is impossible: expected 1 to 65536"),
        ("nodes = 70000", r"nodes = 70000 \(line 1\) is impossible: expected 1 to 65536"),
        ("gpus_per_node = 99999999999999999999999", "is impossible: expected 0 to 4096"),
        ("nodes = " + "9" * 100_000, "not valid TOML: a number or date in it is impossible"),
        ("fail_on = 'errors'", 'expected "error", "warning" or "never"'),
        ("require = 'gpu-count'", "expected a list of checks"),
        ("a = " + "[" * 100_000, "nested too deeply|not valid TOML"),
    ],
)
def test_a_mistake_is_named_with_file_and_place(text: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence) as caught:
        parse_policy(text, "site.toml")
    assert str(caught.value).startswith("--expect site.toml: ")
