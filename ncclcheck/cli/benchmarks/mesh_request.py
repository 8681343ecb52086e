"""What `bench --mesh` and the options beside it ask for; contradictions are refused here."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ncclcheck.cli.files import read_text
from ncclcheck.measure.mesh.model_shape import model_shape
from ncclcheck.measure.mesh.parse import parse_mesh
from ncclcheck.model.bench import Op
from ncclcheck.model.bench_setup import MeshRequest
from ncclcheck.model.benchmarks.mesh import Mesh
from ncclcheck.model.benchmarks.model_shape import ModelRequest
from ncclcheck.model.errors import UsageError

_OF_MESH = ("mesh_order", "dims", "mix", "model")
_OF_MODEL = ("batch", "sequence", "strategy")


def given_mesh(option_values: Mapping[str, Any]) -> Mesh | None:
    """Return the mesh of --mesh and --mesh-order; None where there is none. Raises UsageError."""
    if option_values.get("mesh") is not None:
        return parse_mesh(option_values["mesh"], option_values.get("mesh_order"))
    if option_values.get("mesh_order"):
        raise UsageError("--mesh-order says in which order --mesh has its dimensions: add --mesh")
    return None


def mesh_request(option_values: Mapping[str, Any], ops: Sequence[Op]) -> MeshRequest | None:
    """Return what is to be measured in groups; `ops` are those of --ops, none if it was not given."""
    mesh = given_mesh(option_values)
    _refuse_contradictions(option_values, mesh, ops)
    if mesh is None:
        return None
    dimensions = tuple(dict.fromkeys(name for names in option_values.get("dims") or () for name in names))
    known = [dimension.name for dimension in (*mesh.dimensions, *mesh.overlaid)]
    for name in dimensions:
        if name not in known:
            raise UsageError(f"--dims {name!r}: --mesh has {', '.join(known)}")
    return MeshRequest(mesh, dimensions, tuple(ops), bool(option_values.get("mix")), _model(option_values))


def _refuse_contradictions(option_values: Mapping[str, Any], mesh: Mesh | None, ops: Sequence[Op]) -> None:
    if mesh is None:
        for name in _OF_MESH:
            if option_values.get(name):
                raise UsageError(f"--{name} is for the groups of --mesh: add --mesh pp=2,dp=4,tp=8")
    if not option_values.get("model"):
        for name in _OF_MODEL:
            if option_values.get(name) is not None:
                raise UsageError(
                    f"--{name} says how the model is trained: add --mesh and --model config.json"
                )
    elif ops:
        raise UsageError("--ops and --model both say what the groups of --mesh exchange: give one of them")


def _model(option_values: Mapping[str, Any]) -> ModelRequest | None:
    file = option_values.get("model")
    if not file:
        return None
    try:
        config = json.loads(read_text(file, "--model"))
    except ValueError as error:
        raise UsageError(f"--model {file}: it is no JSON: {error}") from None
    except RecursionError:
        raise UsageError(f"--model {file}: it is nested too deeply for the config.json of a model") from None
    if not isinstance(config, dict):
        raise UsageError(f"--model {file}: expected the config.json of a model, an object")
    usual = ModelRequest(model_shape(config, file))
    return ModelRequest(
        usual.shape,
        option_values.get("batch") or usual.batch,
        option_values.get("sequence") or usual.sequence,
        option_values.get("strategy") or usual.strategy,
    )
