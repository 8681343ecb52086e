"""The labelled logs beside the checkout, where they are: cause, culprit, no false alarm, whatever the names are."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from ncclcheck.checks.logs._outcome import Explained, explained
from ncclcheck.checks.registry import Selection, run_checks
from ncclcheck.logs.collect import Collector
from ncclcheck.logs.lines.split import batches
from ncclcheck.model.snapshot import Snapshot
from tests.further import mostly_further

CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "dev"
pytestmark = pytest.mark.skipif(
    not (CORPUS / "labels.jsonl").is_file(), reason="no labelled logs beside the checkout"
)
TOP_1, CULPRIT, SAME = 0.95, 0.85, 0.95


@cache
def labels() -> tuple[dict[str, Any], ...]:
    if not (CORPUS / "labels.jsonl").is_file():
        return ()
    return tuple(json.loads(line) for line in (CORPUS / "labels.jsonl").read_text().splitlines())


def texts(label: dict[str, Any]) -> dict[str, str]:
    return {name: (CORPUS / name).read_bytes().decode("utf-8", "replace") for name in label["files"]}


def explain(files: dict[str, str]) -> Explained:
    collector = Collector()
    for name, text in files.items():
        collector.read(name, batches([text.encode()]))
    log = collector.log()
    return explained(log, run_checks(Snapshot(nodes=(), log=log), Selection(), "log"))


def answer(result: Explained) -> str:
    if result.outcome == "named":
        return result.findings[0].slug
    return "healthy" if result.outcome == "healthy" else "undetermined"


def is_right(label: dict[str, Any], result: Explained) -> bool:
    return answer(result) in (label["cause"], *label["acceptable"])


def test_the_cause_is_named() -> None:
    wrong = [label["id"] for label in labels() if not is_right(label, explain(texts(label)))]
    assert len(wrong) <= (1 - TOP_1) * len(labels()), wrong


def test_no_healthy_log_has_an_error() -> None:
    for label in labels():
        if label["cause"] == "healthy":
            assert [
                finding for finding in explain(texts(label)).findings if finding.severity == "error"
            ] == []


def test_the_culprit_is_named() -> None:
    with_one = [label for label in labels() if label["hosts_or_ranks"]]
    wrong = []
    for label in with_one:
        result = explain(texts(label))
        named = result.findings[0].hosts if result.findings else ()
        right = [name for name in named if name in label["hosts_or_ranks"]]
        if not right or len(named) > 2 * len(right):
            wrong.append(label["id"])
    assert len(wrong) <= (1 - CULPRIT) * len(with_one), wrong


def other_addresses(text: str) -> str:
    return re.sub(
        r"\b10\.(\d+)\.(\d+)\.(\d+)\b",
        lambda match: f"10.{(int(match[1]) + 77) % 200}.{match[2]}.{match[3]}",
        text,
    )


def other_versions(text: str) -> str:
    for old, new in (
        ("2.20.5", "2.21.5"),
        ("2.19.3", "2.19.4"),
        ("2.18.5", "2.18.6"),
        ("2.27.3", "2.27.7"),
        ("2.28.9", "2.28.7"),
    ):
        text = text.replace(old, new)
    return re.sub(r"(\.(?:cc|cpp|hpp|h)):\d+", r"\1:7", text)


def host_names(label: dict[str, Any]) -> list[str]:
    found = set(re.findall(r"\b([A-Za-z][\w-]{1,30}):\d{3,7}:\d{3,7} \[", "".join(texts(label).values())))
    return sorted(
        (found | {rank for rank in label["hosts_or_ranks"] if " " not in rank}) - {"localhost"},
        key=len,
        reverse=True,
    )


def other_hosts(text: str, label: dict[str, Any]) -> str:
    for number, name in enumerate(host_names(label)):
        text = re.sub(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", f"hx{number:03d}q", text)
    return text


def with_launcher(text: str, form: str) -> str:
    """The lines of srun -l labelled as another launcher does."""
    return re.sub(r"(?m)^ *(\d+): ?", lambda match: form.format(match[1]), text)


_RANKS = re.compile(
    r"(?P<before>\[rank|\b[Rr]ank[ :]{1,2}|^ *(?=\d{1,6}: )|\[1,(?=\d+\]<))(?P<rank>\d{1,6})\b(?!\.\d)",
    re.MULTILINE,
)


def other_ranks(text: str, label: dict[str, Any]) -> str:
    """The ranks but rank 0, which has duties of its own, in the reverse order."""
    found = {int(match["rank"]) for text in texts(label).values() for match in _RANKS.finditer(text)}
    ranks = sorted(found - {0})
    swapped = dict(zip(ranks, reversed(ranks), strict=True))
    return _RANKS.sub(
        lambda match: f"{match['before']}{swapped.get(int(match['rank']), int(match['rank']))}", text
    )


def changed(change: str, text: str, label: dict[str, Any]) -> str:
    """The same log as it would look elsewhere."""
    if change == "addresses":
        return other_addresses(text)
    if change == "versions":
        return other_versions(text)
    if change == "hosts":
        return other_hosts(text, label)
    if change == "open-mpi":
        return with_launcher(text, "[1,{}]<stdout>:")
    if change == "time-stamps":
        return re.sub(r"(?m)^(?=.)", "2025-03-14T09:41:07.123456Z ", text)
    if change == "ranks":
        return other_ranks(text, label)
    if change == "carriage-returns":
        return text.replace("\n", "\r\n")
    return re.sub(r"(?m)^(.+)$", "\x1b[36m\\1\x1b[0m", text)


CHANGES = (
    "addresses",
    "versions",
    "hosts",
    "open-mpi",
    "time-stamps",
    "carriage-returns",
    "colours",
    "ranks",
)


@pytest.mark.slow
@pytest.mark.parametrize("change", mostly_further(CHANGES, 2))  # mark.further
def test_the_answer_does_not_depend_on_names(change: str) -> None:
    differ = []
    for label in labels():
        files = texts(label)
        before = answer(explain(files))
        after = answer(explain({name: changed(change, text, label) for name, text in files.items()}))
        if after not in (before, label["cause"], *label["acceptable"]):
            differ.append((label["id"], before, after))
    assert len(differ) <= (1 - SAME) * len(labels()), differ


def test_the_order_of_the_files_changes_nothing() -> None:
    for label in labels():
        if len(label["files"]) > 1:
            files = texts(label)
            backwards = dict(reversed(files.items()))
            assert explain(backwards).findings == explain(files).findings, label["id"]
