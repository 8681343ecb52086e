"""The report as JSON: what the schema says, read back strictly."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from msgspec.structs import replace

import ncclcheck.report
from ncclcheck.cli.documents import load
from ncclcheck.model.codec import decode, encode
from ncclcheck.model.errors import DecodeError, UsageError
from ncclcheck.model.formats.unsafe_letters import is_unsafe, safe_json
from ncclcheck.model.report import Report
from ncclcheck.report import document
from ncclcheck.report.document import schema_text, to_json
from tests.bench_builders import with_bench
from tests.builders import cluster, seen_alone, with_choice, with_silent, without
from tests.further import mostly_further
from tests.report.reports import ADVICE, check_run, finding, found, mtu_finding, report

SHIPPED = Path(ncclcheck.report.__file__).with_name("schema.json")
REPORTS = {
    "healthy": report(),
    "finding": report(
        [found(mtu_finding()), check_run("gpu-count", "unknown", "why", code="NC401")], advice=ADVICE
    ),
    "silent": report(snapshot=with_silent(cluster(4), "node02")),
    "unreadable": report(snapshot=without(without(cluster(4), "node02", "nccl"), "node02", "interfaces")),
    "nccl fails": report(snapshot=with_choice(cluster(4), "node02", None, None)),
    "alone": report(snapshot=seen_alone(cluster(4), "node02")),
    "bench": report(snapshot=with_bench(cluster(4)), command="bench"),
    "hostile": report([found(finding("x", "\x1b[31m\u202e", summary='"\\\n\x00'))]),
}


def test_the_shipped_schema_is_current() -> None:
    assert SHIPPED.read_text() == schema_text(), (
        "run: ncclcheck report --schema > ncclcheck/report/schema.json"
    )


def test_the_schema_is_a_valid_json_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(json.loads(schema_text()))


@pytest.mark.slow
@pytest.mark.parametrize("name", mostly_further(REPORTS, 3))  # mark.further
def test_reports_are_valid_and_read_back_as_they_were(name: str) -> None:
    made = REPORTS[name]
    text = to_json(made)
    jsonschema.validate(json.loads(text), json.loads(schema_text()), jsonschema.Draft202012Validator)
    assert decode(text, Report) == made
    assert text.endswith("}\n")


def test_the_document_has_the_keys_of_the_contract() -> None:
    document = json.loads(to_json(REPORTS["bench"]))
    assert list(document)[:13] == [
        "schema_version", "tool", "command", "created", "elapsed_s", "verdict",
        "nodes", "checks", "findings", "probes", "nccl", "advice", "bench",
    ]  # fmt: skip
    assert set(document["probes"][0]) >= {
        "kind",
        "from",
        "to",
        "interface",
        "address",
        "port",
        "outcome",
        "value",
        "unit",
    }
    assert document["bench"]["points"][0]["time_us"]["p99"] is None


def test_an_unreadable_fact_is_a_missing_in_its_place() -> None:
    document = json.loads(to_json(REPORTS["unreadable"]))
    assert document["nodes"][1]["facts"]["nccl"] == {"missing": "timeout", "detail": "no answer in 10 s"}
    assert "facts" not in json.loads(to_json(REPORTS["silent"]))["nodes"][1]


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[]", '{"schema_version": "2"}', '{"schema_version": "1"}', to_json(REPORTS["healthy"])[:-20]],
)
def test_what_is_no_report_of_this_version_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text(text)
    with pytest.raises(UsageError, match=r"report\.json"):
        load(str(tmp_path / "report.json"), "report")


def test_unknown_fields_are_refused() -> None:
    text = to_json(replace(REPORTS["healthy"], command="x")).replace('"command"', '"comand"', 1)
    with pytest.raises(DecodeError, match="comand"):
        decode(text, Report)


def test_a_document_too_large_for_the_eye_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    made = report([], cluster(2))
    indented = document.to_json(made)
    monkeypatch.setattr(document, "LARGEST_INDENTED", 1000)
    assert document.to_json(made).count("\n") == 1
    assert json.loads(document.to_json(made)) == json.loads(indented)


@pytest.mark.parametrize("name", REPORTS)
def test_the_parts_of_a_large_document_are_what_is_encoded_at_once(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document, "LARGEST_INDENTED", 1)
    monkeypatch.setattr(document, "_TOGETHER", 3)
    parts = list(document.json_parts(REPORTS[name]))
    assert len(parts) > len(REPORTS[name].__struct_fields__)
    assert "".join(parts) == safe_json(encode(REPORTS[name]).decode()) + "\n"


@pytest.mark.parametrize("largest", [1, 1 << 20], ids=["one line", "indented"])
def test_no_name_steers_the_terminal_that_shows_the_document(
    largest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document, "LARGEST_INDENTED", largest)
    names = "\x1b[31m", "\u202e\u2066", "\x7f\x9b31m", "\u2028", "\U000e0041", "日本🙂é"
    made = report([found(finding("x", *names, summary="\u200b".join(names)))])
    text = to_json(made)
    assert {letter for letter in text if is_unsafe(letter)} <= {"\n"}
    assert "日本🙂é" in text
    assert decode(text, Report) == made
