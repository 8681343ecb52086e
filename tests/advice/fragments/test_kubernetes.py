"""The list is valid YAML for any value, and Kubernetes expands nothing in it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncclcheck.advice.fragments.kubernetes import render_kubernetes
from ncclcheck.model.report import Advice
from tests.advice.fragments.settings import EVIL, any_text, interface_names, setting

yaml = pytest.importorskip("yaml")


def env_of(advice: Advice) -> list[dict[str, Any]]:
    document = yaml.safe_load(render_kubernetes(advice))
    assert list(document) == ["env"]
    return list(document["env"])


def expanded(value: str) -> str:
    """As the kubelet does it with NAME=x in the pod: $$ is a $, and $(NAME) its value (its package `expansion`)."""
    return re.sub(r"\$\$|\$\(NAME\)", lambda match: "$" if match[0] == "$$" else "x", value)


@given(
    st.one_of(st.sampled_from([*EVIL, "$(NAME)", "$$(NAME)", "$", "a\nb"]), interface_names, any_text),
    any_text,
)
def test_a_container_gets_exactly_the_advised_value(value: str, why: str) -> None:
    (entry,) = env_of(Advice((setting(value, why=why),), (why,)))
    assert entry["name"] == "NCCL_SOCKET_IFNAME"
    assert expanded(entry["value"]) == value


@pytest.mark.parametrize("value", ["1", "true", "null", "=eth0", "~", "0x10"])
def test_every_value_is_a_string(value: str) -> None:
    (entry,) = env_of(Advice((setting(value),)))
    assert entry["value"] == value


def test_what_a_list_cannot_say_is_a_comment() -> None:
    advice = Advice((setting(None), setting("eth1", "node07", name="A")))
    assert env_of(advice) == []
    text = render_kubernetes(advice)
    assert "# NCCL_SOCKET_IFNAME is to be unset: take it out of env" in text
    assert "# only on node07: A='eth1'; a pod template cannot choose by host" in text


def test_no_advice_says_so_and_why() -> None:
    assert env_of(Advice((), ("one node",))) == []
    assert render_kubernetes(Advice((), ("one node",))).endswith(
        "  # ncclcheck: nothing to set\n  # one node\n"
    )
