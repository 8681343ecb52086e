"""Text that an expression needs: never one that it can do without."""

from __future__ import annotations

import re

import pytest

from ncclcheck.logs.patterns.literals import alternatives, needles, required
from ncclcheck.logs.patterns.topics import TOPIC_PATTERNS


@pytest.mark.parametrize(
    ("pattern", "texts"),
    [
        ("Too many open files|EMFILE", ("too many open files", "emfile")),
        (r"connect \d+ refused", ("connect ",)),
        ("colou?r of", ("colour of", "color of")),
        ("(?:abc )?needed", ("needed",)),
        ("ab+cd", ("bcd",)),
        ("a[bc]d{2}e", ("abdde", "acdde")),
        ("ab{2,}: (?P<name>[x]y.*)", ("bb: xy",)),
        ("(?:a.b|ccc)+ then", (" then",)),
        (r"(?!no)yes(?=ok)", ("yes",)),
        ("[^a]bcd|[a-c]efg", ("bcd", "efg")),
        ("torch|pytorch", ("torch",)),
        ("(?:one|three) of", ("one of", "three of")),
        ("(?:abc)?x", ()),
        (r"\d+", ()),
        ("a|b", ()),
    ],
)
def test_what_is_needed(pattern: str, texts: tuple[str, ...]) -> None:
    assert required(pattern) == texts


def test_one_expression_finds_a_text_of_each_pattern() -> None:
    find = re.compile(needles(["error|errand", r"rank \d+ (?:lost|left) it", "a.c(?:x+)def"])).search
    assert all(find(line) for line in ("an error", "errands", "rank 3 lost it", "abcxxdef"))
    assert not any(find(line) for line in ("err", "rank 3", "lost", "def"))


def test_a_pattern_that_needs_no_text_is_refused() -> None:
    with pytest.raises(ValueError, match=r"a\.b"):
        needles(["abc", "a.b"])


def test_the_outermost_alternatives() -> None:
    assert alternatives(r"a(?:b|c)|[|]d|\|e") == ("a(?:b|c)", "[|]d", r"\|e")


@pytest.mark.parametrize("words", TOPIC_PATTERNS)
def test_every_topic_needs_some_text_and_compiles(words: str) -> None:
    assert required(words)
    assert re.compile(words, re.IGNORECASE)
