"""Kubeflow, which describes the job in PET_* for a torchrun that has yet to start."""

from __future__ import annotations

from collections.abc import Mapping

from ncclcheck.launch.launcher import Launcher
from ncclcheck.launch.line.launch_line import LaunchLine
from ncclcheck.launch.line.torchrun_line import VARIABLES, line_of, options_in_environment


def line_in_environment(environ: Mapping[str, str]) -> LaunchLine | None:
    """Return the job that PET_* describe for a torchrun that is yet to start; None where they do not say its nodes.

    Kubeflow sets them: PyTorchJob (training-operator pkg/controller.v1/pytorch/envvar.go and elastic.go) and Trainer
    (trainer pkg/runtime/framework/plugins/torch/torch.go).
    """
    if not environ.get("PET_NNODES"):
        return None
    values = options_in_environment(environ)
    if values.get("--rdzv-backend", "static") == "static" and "--rdzv-endpoint" not in values:
        # PyTorchJob gives the address to torchrun's workers and to torchrun alike.
        plain = {"--master-addr": environ.get("MASTER_ADDR"), "--master-port": environ.get("MASTER_PORT")}
        values = {**{name: value for name, value in plain.items() if value}, **values}
    return line_of("PET_NNODES", values)


KUBEFLOW = Launcher(
    name="kubeflow",
    label="Kubeflow",
    variables=VARIABLES,
    describe_job=line_in_environment,
)
