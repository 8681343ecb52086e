"""A report that a stranger wrote sets nothing that could run, load or call something."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.advice.allowed import only_allowed
from ncclcheck.model.report import Advice
from tests.report.reports import ADVICE


def test_what_we_advise_is_allowed() -> None:
    assert ADVICE.env
    assert only_allowed(ADVICE) == (ADVICE, ())


def test_what_could_run_something_is_left_out_and_said() -> None:
    evil = replace(ADVICE.env[0], name="LD_PRELOAD", value="/tmp/evil.so")
    shell = replace(ADVICE.env[0], name="X=1; touch /tmp/owned; Y", value="1")
    value = replace(ADVICE.env[0], value="eth0$(touch /tmp/owned)")
    allowed, refused = only_allowed(Advice((evil, *ADVICE.env, shell, value), ADVICE.notes))
    assert allowed == ADVICE
    assert [
        name in reason
        for name, reason in zip(("LD_PRELOAD", "touch", ADVICE.env[0].name), refused, strict=True)
    ]
    assert len(refused) == 3
