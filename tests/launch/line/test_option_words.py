"""Options before a script, by a launcher's table: as argparse takes them, and nothing swallowed by mistake."""

from __future__ import annotations

import pytest

from ncclcheck.launch.line.option_words import Option, Taken, both_spellings, take, truth, whole_number
from ncclcheck.model.errors import UsageError

TABLE = (
    Option(both_spellings("--node-rank")),
    Option(both_spellings("--node-count")),
    Option(("--redirects", "-r")),
    Option(("--standalone",), is_flag=True),
)


@pytest.mark.parametrize(
    ("words", "values"),
    [
        (["--node-rank", "1"], {"--node-rank": "1"}),
        (["--node_rank=1"], {"--node-rank": "1"}),
        (["--node-r", "1"], {"--node-rank": "1"}),
        (["-r3"], {"--redirects": "3"}),
        (["--stand"], {"--standalone": ""}),
        (["--node-rank", "-1"], {"--node-rank": "-1"}),
        (["--new-thing=5", "--standalone"], {"--standalone": ""}),
        (["--new-flag", "--standalone"], {"--standalone": ""}),
        ([], {}),
    ],
)
def test_options_end_at_the_script(words: list[str], values: dict[str, str]) -> None:
    taken = take("launcher", TABLE, [*words, "train.py", "--node-rank", "7", "--", "x"])
    assert taken == Taken(values, "train.py", ("--node-rank", "7", "--", "x"))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--node", "1", "train.py"], "ambiguous option"),
        (["--node-rank"], "expected one argument"),
        (["--standalone"], "names no script"),
        (
            ["--new-thing", "5", "train.py"],
            "--new-thing: ncclcheck does not know this option, nor whether '5'",
        ),
    ],
)
def test_what_the_launcher_would_refuse_or_nobody_can_tell_is_refused(
    words: list[str], sentence: str
) -> None:
    with pytest.raises(UsageError, match=r"launcher") as told:
        take("launcher", TABLE, words)
    assert sentence in str(told.value)


def test_help_starts_nothing() -> None:
    assert take("launcher", TABLE, ["-h"]) is None


def test_without_abbreviations_a_part_of_a_name_is_another_option() -> None:
    taken = take("launcher", TABLE, ["--node-r=1", "train.py"], abbreviated=False)
    assert taken == Taken({}, "train.py", ())


def test_numbers_and_switches() -> None:
    assert whole_number("x", "--n", "3") == 3
    with pytest.raises(UsageError, match="expected a whole number"):
        whole_number("x", "--n", "three")
    with pytest.raises(UsageError, match="at least 1"):
        whole_number("x", "--n", "0", 1)
    assert [truth(text) for text in (None, "1", "True", "0", "no")] == [None, True, True, False, False]
