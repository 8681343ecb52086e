"""The node that a line is about, where another node speaks it: Ray's raylet and memory monitor, Slurm, events of pods.

Who does not answer ssh is named, not who called.

Source: Ray src/ray/raylet/node_manager.cc and common/memory_monitor, Slurm src/srun and src/api/step_launch.c,
`kubectl get events`.
"""

from __future__ import annotations

import re

_NAMED = re.compile(
    r"[Mm]emory on the node \(IP: (?P<memory>[\w.:-]{1,253})|"
    r"\bat node \(ID: \w{1,64}, IP: (?P<raylet>[\w.:-]{1,253})\)|"
    r"\(pid=\d{1,10}, ip=(?P<actor>[\w.:]{2,45}), actor_id=|"
    r"ssh: connect to host (?P<reached>[\w.-]{1,253}) port \d{1,5}: |"
    r"host=(?P<ssh>[\w.-]{1,253}) was not reachable via ssh|"
    r"Worker IP address: (?P<worker>[\w.:-]{1,253})|"
    r"Task launch for StepId=\S{1,40} failed on node (?P<launch>[\w.-]{1,253}):|"
    r"[Nn]ode with node id: \w{1,64} and address: (?P<dead>[\w.:-]{1,253}) |"
    r"[Nn]ode failure on (?P<failed>[\w.-]{1,253})|"
    r"This process on node (?P<started>[\w.:-]{1,253}) was started with|"
    r"(?:Warning|Normal) +\w{1,40} +pod/(?P<pod>[\w.-]{1,253}) "
)


def node_named_in(text: str) -> str:
    """Return the node, address or pod that the line names as the place of the event; empty where it names none."""
    match = _NAMED.search(text)
    return next((name for name in match.groups() if name), "") if match else ""
