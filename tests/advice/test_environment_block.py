"""Each format is rendered by its own module; JSON is the report's."""

from __future__ import annotations

import json

import pytest

from ncclcheck.advice.environment_block import Format, render, render_json
from ncclcheck.model.report import Advice
from tests.advice.fragments.settings import setting


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("sh", "export NCCL_SOCKET_IFNAME='=eth0'"),
        ("docker", "NCCL_SOCKET_IFNAME==eth0"),
        ("slurm", "export NCCL_SOCKET_IFNAME='=eth0'"),
        ("k8s", '    value: "=eth0"'),
        ("json", '   "value": "=eth0",'),
    ],
)
def test_each_format_has_the_setting_and_a_final_newline(name: Format, line: str) -> None:
    text = render(Advice((setting("=eth0"),)), name)
    assert line in text.splitlines()
    assert text.endswith("\n")


def test_json_has_null_for_unset() -> None:
    document = json.loads(render_json(Advice((setting(None),))))
    assert document["env"][0]["value"] is None
    assert document["env"][0]["hosts"] == []
