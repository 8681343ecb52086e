"""The Kubernetes manifests: valid by the schemas of the real APIs, and their command works where a pod would run it."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from ncclcheck.cli.main import command

EXAMPLES = Path(__file__).parents[2] / "examples" / "kubernetes"
VERSION = "1.33"
JOBSETS = ("jobset.yaml", "watch-jobset.yaml")


def documents(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((EXAMPLES / name).read_text()))


def pod_of(job: dict[str, Any]) -> dict[str, Any]:
    pod: dict[str, Any] = job["spec"]["template"]["spec"]
    return pod


def test_the_indexed_job_is_valid_by_the_schemas_of_kubernetes() -> None:
    service, job = documents("indexed-job.yaml")
    kubernetes_validate.validate(service, VERSION, strict=True)
    kubernetes_validate.validate(job, VERSION, strict=True)


def test_the_check_of_the_schema_can_fail() -> None:
    _, job = documents("indexed-job.yaml")
    job["spec"]["completionmode"] = job["spec"].pop("completionMode")
    with pytest.raises(kubernetes_validate.ValidationError, match="completionmode"):
        kubernetes_validate.validate(job, VERSION, strict=True)


def test_the_pods_of_the_indexed_job_find_each_other_by_name() -> None:
    service, job = documents("indexed-job.yaml")
    pod = pod_of(job)
    environment = {entry["name"]: entry.get("value") for entry in pod["containers"][0]["env"]}
    assert environment["NCCLCHECK_KEY"] is None  # it is in a Secret
    assert service["spec"]["selector"] == {"job-name": job["metadata"]["name"]}
    assert service["metadata"]["name"] == pod["subdomain"]
    assert environment["MASTER_ADDR"] == f"{job['metadata']['name']}-0.{pod['subdomain']}"
    assert environment["NNODES"] == str(job["spec"]["completions"]) == str(job["spec"]["parallelism"])


@pytest.mark.slow  # the import of its models
@pytest.mark.parametrize("name", JOBSETS)
def test_the_jobset_is_valid_by_the_model_of_its_api(name: str) -> None:
    from kubeflow_trainer_api.models.jobset_v1alpha2_job_set import JobsetV1alpha2JobSet

    (jobset,) = documents(name)
    known = JobsetV1alpha2JobSet.from_dict(jobset)
    assert known is not None
    assert unknown_keys(jobset, known.to_dict()) == []
    (node,) = jobset["spec"]["replicatedJobs"]
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "node"}, **node["template"]}
    kubernetes_validate.validate(job, VERSION, strict=True)


@pytest.mark.parametrize("name", JOBSETS)
def test_the_pods_of_the_jobset_find_each_other_by_name(name: str) -> None:
    (jobset,) = documents(name)
    (node,) = jobset["spec"]["replicatedJobs"]
    environment = {
        container["name"]: container.get("value")
        for container in pod_of(node["template"])["containers"][0]["env"]
    }
    own = jobset["metadata"]["name"]
    assert environment["MASTER_ADDR"] == f"{own}-{node['name']}-0-0.{own}"
    assert environment["NNODES"] == str(node["template"]["spec"]["completions"])


def test_both_manifests_run_the_same_container() -> None:
    _, job = documents("indexed-job.yaml")
    (jobset,) = documents("jobset.yaml")
    one, other = pod_of(job), pod_of(jobset["spec"]["replicatedJobs"][0]["template"])
    assert one["containers"][0]["command"] == other["containers"][0]["command"]
    assert one["volumes"] == other["volumes"]


def test_the_watched_jobset_is_the_other_one_with_a_watcher_that_may_read_stacks() -> None:
    (plain,), (watched,) = documents("jobset.yaml"), documents("watch-jobset.yaml")
    pods = [pod_of(jobset["spec"]["replicatedJobs"][0]["template"]) for jobset in (plain, watched)]
    (container,), (own,) = (pod["containers"] for pod in pods)
    words = shlex.split(own["command"][-1])
    at = words.index("--")
    assert words[at:] == shlex.split(container["command"][-1])[3:]
    assert words[:3] == ["exec", "ncclcheck", "watch"]
    top = command.make_context("ncclcheck", ["watch"], resilient_parsing=True)
    given = command.commands["watch"].make_context("watch", words[3:], parent=top).params
    assert (given["preflight"], given["isolate"], given["on_hang"]) == (True, True, "stop")
    assert own["securityContext"]["capabilities"]["add"] == ["SYS_PTRACE"]
    assert {mount["name"] for mount in own["volumeMounts"]} == {
        volume["name"] for volume in pods[1]["volumes"]
    }
    assert own["env"] == container["env"]


def unknown_keys(given: Any, known: Any, path: str = "") -> list[str]:
    """Keys of `given` that its typed form has lost."""
    if isinstance(given, dict):
        lost = [f"{path}{key}" for key in given if key not in known]
        return lost + [
            unknown_key
            for key in given
            if key in known
            for unknown_key in unknown_keys(given[key], known[key], f"{path}{key}.")
        ]
    if isinstance(given, list):
        return [
            unknown_key
            for mine, its in zip(given, known, strict=True)
            for unknown_key in unknown_keys(mine, its, path)
        ]
    return []
