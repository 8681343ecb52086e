"""Text that an expression needs: never one that it can do without."""

from __future__ import annotations

import re

import pytest

from ncclcheck.logs.literals import alternatives, required
from ncclcheck.logs.topics_machine import MACHINE_TOPICS
from ncclcheck.logs.topics_network import NETWORK_TOPICS


@pytest.mark.parametrize(
    ("pattern", "texts"),
    [
        ("Too many open files|EMFILE", ("too many open files", "emfile")),
        (r"connect \d+ refused", ("connect ",)),
        ("colou?r of", ("colo",)),
        ("(?:one|three) of", ("one", "three")),
        ("(?:abc)?x", ()),
        (r"\d+", ()),
        ("a|b", ()),
    ],
)
def test_what_is_needed(pattern: str, texts: tuple[str, ...]) -> None:
    assert required(pattern) == texts


def test_the_outermost_alternatives() -> None:
    assert alternatives(r"a(?:b|c)|[|]d|\|e") == ["a(?:b|c)", "[|]d", r"\|e"]


@pytest.mark.parametrize("words", [words for _, words in NETWORK_TOPICS + MACHINE_TOPICS])
def test_every_topic_needs_some_text_and_compiles(words: str) -> None:
    assert required(words)
    assert re.compile(words, re.IGNORECASE)
