"""NC215 prediction-differs."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from ncclcheck.checks.ifname_settings import NCCL_VARIABLE, IfnameSetting, not_settled, settings
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import Evidence, Finding, Fix, NotApplicable
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.nccl.prediction import Prediction, node_choice


@check(
    "NC215",
    "prediction-differs",
    "ncclcheck's model of NCCL agrees with the library",
    needs=("interfaces", "environment", "nccl"),
)
def prediction_differs(snapshot: Snapshot) -> Iterator[Answer]:
    """Where the real library was asked which interface it uses, ncclcheck's model predicts the same.

    It was asked under the job's environment, and again with each setting that could be advised.

    ## Why it matters
    The report uses the library's answer. A difference is a bug in ncclcheck: its predictions for other versions, or
    for nodes where the library cannot be asked, may then be wrong.

    ## How to fix
    Report it, with the file that `--save` writes.

    ## Source
    ncclGetUniqueId of the library named in the evidence; ncclcheck/nccl/socket_interface.py.
    """
    known = settings(snapshot)
    for setting in known:
        if setting.choice.disagreement:
            yield _finding(setting)
    if not any(setting.choice.source == "asked" for setting in known):
        yield NotApplicable("the NCCL library was not asked on any node")
    yield from _confirmed(snapshot)
    yield from not_settled(snapshot)


def _confirmed(snapshot: Snapshot) -> Iterator[Finding]:
    """The disagreements when the library was asked again with settings that could be advised."""
    facts_of = {node.host: node.facts for node in snapshot.nodes}
    for confirmation in snapshot.confirmations:
        facts = facts_of.get(confirmation.host)
        if facts is None or isinstance(confirmation.answer, Missing):
            continue
        if isinstance(facts.environment, Missing) or isinstance(facts.nccl, Missing):
            continue
        changed = {**facts.environment, **confirmation.env}
        environment = {name: value for name, value in changed.items() if value is not None}
        asked = replace(facts, environment=environment, nccl=replace(facts.nccl, asked=confirmation.answer))
        choice = node_choice(asked)
        if not isinstance(choice, Missing) and choice.disagreement:
            settings_text = " ".join(f"{name}={value or ''}" for name, value in confirmation.env.items())
            yield _disagreement(confirmation.host, choice, settings_text)


def _finding(setting: IfnameSetting) -> Finding:
    return _disagreement(setting.host, setting.choice, f"{NCCL_VARIABLE}={setting.nccl or 'unset'}")


def _disagreement(host: str, choice: Prediction, under: str) -> Finding:
    return Finding(
        "warning",
        f"on {host} under {under}, {choice.disagreement}",
        (host,),
        (
            Evidence(
                (host,),
                f"NCCL's choice ({under})",
                f"{choice.interface} {choice.address}",
                "what the model says",
                choice.library or "the library",
            ),
        ),
        (
            Fix(
                "report it as a bug of ncclcheck, with the snapshot",
                ("ncclcheck preflight --save snapshot.json",),
            ),
        ),
    )
