"""Finds the libibverbs that a process of the job would load, in a child with the job's environment."""

from __future__ import annotations

import json
from collections.abc import Mapping

from ncclcheck.facts.child import run_python_child
from ncclcheck.facts.rdma.verbs_child import MARK
from ncclcheck.model.fact import Fact, Missing


def find_verbs_library(environ: Mapping[str, str], deadline_s: float) -> Fact[str]:
    """Return the path from which the loader takes libibverbs under `environ`; Missing "absent" where it finds none.

    "error" is one that it finds and cannot use: a library that this one needs is missing, or it is of another
    machine. NCCL_IBVERBS_LIB is not considered: only NCCL of some versions obeys it.
    """
    result = run_python_child("ncclcheck.facts.rdma.verbs_child", [], deadline_s=deadline_s, env=environ)
    if isinstance(result, Missing):
        return Missing(result.missing, f"libibverbs: {result.detail}")
    _, mark, text = result.stdout.decode("utf-8", "replace").rpartition(MARK)
    if result.returncode != 0 or not mark:
        error_text = result.stderr.decode("utf-8", "replace").strip()[-500:]
        return Missing("error", f"libibverbs: the child ended with {result.returncode}: {error_text}")
    answer = json.loads(text)
    return answer["path"] or Missing("error" if answer["broken"] else "absent", answer["detail"])
