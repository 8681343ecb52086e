"""Every command line of README and docs is one that the program takes; every link and anchor leads somewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from ncclcheck.checks.registry import every_check
from ncclcheck.cli.main import command
from ncclcheck.cli.request import run_options
from ncclcheck.launch.line.command_line import read_command
from ncclcheck.model.errors import UsageError
from tests.docs.code_blocks import PAGES, ROOT, SCRIPTS, Example, examples

_FILES = (
    "try_file",
    "key_file",
    "expect",
    "baseline",
    "hostfile",
    "from_",
    "model",
)  # what the reader has, and we have not
_OF_MODEL = ("batch", "sequence", "strategy")
_INDEX = re.compile(r"\$\{?\w*(?:RANK|NODEID|INDEX|K)\}?")
_VARIABLE = re.compile(r"\$\{?\w+\}?")
_ANSWER = re.compile(r"\$\([^)]*\)")
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
# A path of ours between backticks; one with a placeholder or a wildcard is none.
_OWN_FILE = re.compile(
    r"`((?:ncclcheck|tests|scripts|docs|examples|run|exchange|facts|model|nccl|logs|launch|advice|bench|spawn|checks)"
    r"/[\w/.-]+)`"
)
_ROOTS = (ROOT, ROOT / "ncclcheck")
_PLACEHOLDER = re.compile(r"[A-Z]+")


def _all_examples() -> Iterator[Example]:
    for page in PAGES:
        yield from examples(page)


def _refusal(words: tuple[str, ...]) -> str | None:
    """Why the program would not take these words; None if it would."""
    plain = [_VARIABLE.sub("4", _INDEX.sub("1", _ANSWER.sub("node1", word))) for word in words]
    top = command.make_context("ncclcheck", plain[:1], resilient_parsing=True)
    name = plain[0].replace("_", "-")
    own = command.get_command(top, name)
    if own is None:
        return None if plain[0] in ("--help", "--version") else f"there is no command {name}"
    try:
        context = own.make_context(name, plain[1:], parent=top)
        _judge(context.command.name or name, context.params)
    except click.exceptions.Exit:  # --help
        return None
    except (click.ClickException, UsageError) as error:
        return str(error)
    return None


def _judge(name: str, given: dict[str, Any]) -> None:
    """Refuses what the program would refuse before it looks at the world. Raises UsageError."""
    slug = given.get("slug")
    if name == "checks" and slug and not _PLACEHOLDER.fullmatch(slug):
        known = {word for check in every_check() for word in (check.slug, check.code)}
        if slug not in known:
            raise UsageError(f"there is no check {slug}")
    if name not in ("preflight", "bench", "run"):
        return
    left_out = (*_FILES, *(_OF_MODEL if given.get("model") else ()))
    own = {key: value for key, value in given.items() if key not in left_out}
    for key in ("select", "ignore", "demote", "require"):
        own[key] = tuple(tuple(one for one in names if not _PLACEHOLDER.fullmatch(one)) for names in own[key])
    if given.get("hosts") or not given.get(
        "hostfile"
    ):  # without the file the options of ssh would stand alone
        run_options(name, own)  # type: ignore[arg-type]  # one of the three
    if own.get("command") and not _PLACEHOLDER.fullmatch(own["command"][0]):
        read_command(own["command"], {}, lambda _: None)


def test_every_page_is_read() -> None:
    found = [example.words for example in _all_examples()]
    assert len(found) > 80
    assert ("checks", "world-size-mismatch") in found
    assert {words[0] for words in found} >= set(command.commands) - {"remote"}


@pytest.mark.parametrize("page", [*PAGES, *SCRIPTS], ids=lambda page: page.name)
def test_every_command_line_is_taken(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JOB_NODELIST", "node[01-04]")
    refused = {example.place: _refusal(example.words) for example in examples(page)}
    assert {place: why for place, why in refused.items() if why is not None} == {}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('    eval "$(ncclcheck env)"    # for the shell', ["env"]),
        ("    kubectl logs -l a=b | ncclcheck explain -", ["explain", "-"]),
        ("    RUN ncclcheck preflight --image     # the last step", ["preflight", "--image"]),
        ("    srun bash -c 'exec ncclcheck preflight -- \\\n        python \"$X\" train.py'",
         ["preflight", "--", "python", "$X", "train.py"]),
        ("as `ncclcheck facts\n--as-policy` says", ["facts", "--as-policy"]),
        ("    9 checks · 'ncclcheck checks SLUG' explains a check", ["checks", "SLUG"]),
    ],
)  # fmt: skip
def test_what_a_command_line_is(line: str, words: list[str], tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text(line + "\n", encoding="utf-8")
    assert [list(example.words) for example in examples(tmp_path / "page.md")] == [words]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("compare", "old.json", "new.json"), "there is no command compare"),
        (("preflight", "--nodes", "4"), "--nodes"),
        (("preflight", "--require", "peer-filterd"), "peer-filterd"),
        (("bench", "--sizes", "1M..4M"), "1M..4M"),
        (("bench", "--min-busbw", "all_reduce@3K=1"), "3K is not measured"),
        (("checks", "peer-oneway"), "there is no check peer-oneway"),
        (("preflight", "--", "srun", "train.py"), "put it behind"),
        (("report", "compare", "--tolerence", "3", "a.json", "b.json"), "--tolerence"),
    ],
)
def test_what_the_program_would_refuse_is_seen(words: tuple[str, ...], why: str) -> None:
    assert why in (_refusal(words) or "")


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CHANGELOG.md"], ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    broken = [link for link in _LINK.findall(page.read_text(encoding="utf-8")) if not _leads(page, link)]
    assert broken == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_file_of_ours_that_a_page_names_is_there(page: Path) -> None:
    named = set(_OWN_FILE.findall(page.read_text(encoding="utf-8")))
    assert sorted(name for name in named if not any((root / name).exists() for root in _ROOTS)) == []


def _leads(page: Path, link: str) -> bool:
    if link.startswith(("https://", "http://")):
        return True
    name, _, anchor = link.partition("#")
    target = (page.parent / name).resolve() if name else page
    if not target.exists() or not target.is_relative_to(ROOT):
        return False
    return not anchor or anchor in _anchors(target)


def _anchors(page: Path) -> set[str]:
    """The headings as GitHub makes anchors of them: lower case, no punctuation, dashes for blanks."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_page_is_in_the_index_and_every_option_on_a_page() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    assert [page.name for page in PAGES if page.parent.name == "docs" and f"({page.name})" not in index] == [
        "README.md"
    ]
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    options = {
        param.opts[-1]: param.opts
        for one in command.commands.values()
        if not one.hidden
        for param in one.params
        if isinstance(param, click.Option)
    }
    assert [
        long
        for long, names in options.items()
        if not any(re.search(rf"(?<![\w-]){name}(?![\w-])", text) for name in names)
    ] == []
