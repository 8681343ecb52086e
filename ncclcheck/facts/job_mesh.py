"""The job's parallel groups, as this node's own command line says."""

from __future__ import annotations

from ncclcheck.facts.section import Section

MESH = Section(
    {"mesh": "`--mesh` and `--mesh-order`, or the arguments of the command behind `--`"},
    read=lambda request: request.mesh,
)
