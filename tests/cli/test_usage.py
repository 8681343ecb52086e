"""Click's complaints in our words."""

from __future__ import annotations

import click

from ncclcheck.cli.usage import one_sentence


def test_a_complaint_without_a_context_is_still_a_sentence() -> None:
    assert one_sentence(click.UsageError("Got a\nproblem.")) == "got a problem"
    assert (
        one_sentence(click.NoSuchOption("--x"))
        == "unknown option '--x': 'ncclcheck --help' lists the options"
    )
