"""Names and numbers in sentences."""

from __future__ import annotations

from ncclcheck.model.formats.prose import joined, listed, plural


def test_of_many_names_the_first_are_listed_and_the_rest_counted() -> None:
    assert listed([]) == ""
    assert listed(["a", "b", "a"]) == "a, b"
    assert listed("abc", 3) == "a, b, c"
    assert listed("abcd", 3) == "a, b, c and 1 more"
    assert listed("abcde", 3, last=", ") == "a, b, c, 2 more"
    assert listed(range(10), 2) == "0, 1 and 8 more"


def test_names_that_were_not_sent_are_counted_too() -> None:
    assert listed(["a", "b"], 4, count=9) == "a, b and 7 more"
    assert listed(["a", "b"], 4, count=2) == "a, b"


def test_names_are_joined_as_in_a_sentence() -> None:
    assert [joined(names) for names in ("", "a", "ab", "abc", "aba")] == [
        "",
        "a",
        "a and b",
        "a, b and c",
        "a and b",
    ]


def test_one_is_no_plural() -> None:
    assert [plural(count, "node") for count in (0, 1, 2)] == ["0 nodes", "1 node", "2 nodes"]
