"""What --from takes, and how what it does not take is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ncclcheck.cli.documents import load, load_saved
from ncclcheck.model import codec
from ncclcheck.model.codec import encode_pretty
from ncclcheck.model.errors import UsageError
from ncclcheck.model.saved import FactsDocument, Saved
from ncclcheck.report.document import to_json
from tests.builders import cluster, node
from tests.cli.command_line import saved_run
from tests.large_runs import large_run
from tests.report.reports import report


def facts_file(path: Path, nnodes: int) -> str:
    one = cluster(nnodes).nodes[0]
    path.write_text(encode_pretty(FactsDocument("1", one.host, one.facts)))
    return str(path)


def test_a_saved_run_is_read_as_it_was(tmp_path: Path) -> None:
    saved = load_saved(saved_run(tmp_path / "run.json"), "preflight")
    assert saved.snapshot.nodes == cluster(4).nodes
    assert saved.snapshot.probes == cluster(4).probes


def test_facts_are_a_run_of_one_node(tmp_path: Path) -> None:
    snapshot = load_saved(facts_file(tmp_path / "facts.json", 1), "preflight").snapshot
    assert [one.host for one in snapshot.nodes] == ["node01"]
    assert snapshot.viewpoint == "all"


def test_the_facts_of_one_node_of_many_say_nothing_of_the_others(tmp_path: Path) -> None:
    snapshot = load_saved(facts_file(tmp_path / "facts.json", 4), "preflight").snapshot
    assert snapshot.viewpoint == "one-node"
    assert node(snapshot, "node01").facts.launch == snapshot.claims[0]


def test_a_report_is_no_run(tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text(to_json(report()))
    assert load(str(tmp_path / "report.json"), "report") == report()
    with pytest.raises(UsageError, match="this is a report: 'ncclcheck report"):
        load_saved(str(tmp_path / "report.json"), "preflight")


def changed(path: Path, **fields: Any) -> str:
    document = {**json.loads(Path(saved_run(path)).read_text()), **fields}
    path.write_text(json.dumps({name: value for name, value in document.items() if value is not None}))
    return str(path)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"schema_version": "2"}, "schema version '2', but ncclcheck 0.1.0 reads version '1'"),
        ({"schema_version": None}, "it has no schema_version"),
        ({"kind": "something"}, "neither a saved run, nor the facts of a node, nor a report"),
        ({"snapshot": None}, "damaged saved run: .*snapshot"),
        ({"elapsed_s": "long"}, "damaged saved run: .*elapsed_s"),
        ({"added": 1}, "damaged saved run: .*added"),
        (
            {"added": 1, "tool": {"name": "ncclcheck", "version": "9.1"}},
            r"ncclcheck 9\.1 wrote this saved run, and ncclcheck 0\.1\.0 cannot read it: use the newer one .*added",
        ),
    ],
)
def test_another_document_is_refused_by_name(tmp_path: Path, fields: dict[str, Any], sentence: str) -> None:
    file = changed(tmp_path / "run.json", **fields)
    with pytest.raises(UsageError, match=sentence):
        load(file, "--from")


@pytest.mark.parametrize(
    "fields",
    [{"schema_version": "2" * 100_000}, {"added": 1, "tool": {"name": "", "version": "9" * 100_000}}],
)
def test_a_version_without_end_is_not_repeated_as_a_whole(tmp_path: Path, fields: dict[str, Any]) -> None:
    file = changed(tmp_path / "run.json", **fields)
    with pytest.raises(UsageError) as told:
        load(file, "--from")
    assert len(str(told.value)) < 1000


@pytest.mark.parametrize("data", [b"", b"{", b"[1]", b"\x00\xff", b'"text"', b"[" * 100_000])
def test_garbage_is_refused_with_one_sentence(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x.json").write_bytes(data)
    with pytest.raises(UsageError, match="not a document of ncclcheck") as caught:
        load(str(tmp_path / "x.json"), "--from")
    assert "\n" not in str(caught.value)


def test_every_cut_of_a_document_is_refused(tmp_path: Path) -> None:
    whole = Path(saved_run(tmp_path / "run.json", cluster(1))).read_bytes()
    cut = tmp_path / "cut.json"
    for length in range(0, len(whole) - 1, max(1, len(whole) // 50)):
        cut.write_bytes(whole[:length])
        with pytest.raises(UsageError):
            load(str(cut), "--from")


def test_facts_keep_their_launch_when_it_is_missing(tmp_path: Path) -> None:
    one = cluster(1).nodes[0]
    facts = replace(one.facts, launch=replace(one.facts, launch=one.facts.master).launch)
    (tmp_path / "f.json").write_text(
        encode_pretty(FactsDocument("1", "n", replace(facts, launch=type(facts)().launch)))
    )
    saved = load_saved(str(tmp_path / "f.json"), "preflight")
    assert isinstance(saved, Saved)
    assert saved.snapshot.claims == ()


def test_a_run_too_large_to_be_read_by_eye_is_saved_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Indented, that of thousands of nodes would be a third larger, and three times in memory."""
    run = large_run(3, "broken")
    monkeypatch.setattr(codec, "LARGEST_INDENTED", 1000)
    file = tmp_path / "saved.json"
    file.write_text(codec.encode_readable(run))
    assert file.read_text().count("\n") == 0
    assert load_saved(str(file), "preflight") == run
    monkeypatch.setattr(codec, "LARGEST_INDENTED", 1 << 30)
    assert codec.encode_readable(run) == codec.encode_pretty(run)
