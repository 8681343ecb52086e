"""What a step exchanges, against sizes worked out by hand, published models, and AICB's generator."""

from __future__ import annotations

import pytest

from ncclcheck.measure.mesh.model_calls import layer_parameters, step_calls, unruled
from ncclcheck.measure.mesh.model_shape import model_shape
from ncclcheck.measure.mesh.parse import parse_mesh
from ncclcheck.model.benchmarks.mesh_bench import MeshCall
from ncclcheck.model.benchmarks.model_shape import ModelRequest, Strategy
from tests.measure.mesh.test_model_shape import GPT2, LLAMA, MIXTRAL


def calls(
    mesh: str,
    config: dict[str, object] = LLAMA,
    strategy: Strategy = "fsdp",
    batch: int = 1,
    sequence: int = 8192,
) -> dict[tuple[str, str, str], MeshCall]:
    request = ModelRequest(model_shape(config, "c"), batch, sequence, strategy)
    found = step_calls(request, parse_mesh(mesh))
    return {(call.dimension, call.op, call.what): call for call in found}


@pytest.mark.parametrize(("config", "parameters"), [(LLAMA, 8_030_261_248), (GPT2, 124_439_808)])
def test_the_parameters_are_those_of_the_published_models(config: dict[str, object], parameters: int) -> None:
    """8.03 and 0.124 billion; what is left out are biases, positions and the last norm."""
    shape = model_shape(config, "c")
    embeddings = shape.vocabulary * shape.hidden * (1 if shape.tied else 2)
    counted = shape.layers * layer_parameters(shape) + embeddings
    assert counted == pytest.approx(parameters, rel=0.01)


def test_fsdp_gathers_each_layer_twice_and_scatters_its_gradients_once() -> None:
    found = calls("dp=8")
    layer = 218_112_000  # of Llama 3.1 8B
    assert found["dp", "all_gather", "parameters of a layer"].size_bytes == 2 * layer
    assert found["dp", "all_gather", "parameters of a layer"].per_step == 64
    assert found["dp", "reduce_scatter", "gradients of a layer"].size_bytes == 4 * layer
    assert found["dp", "reduce_scatter", "gradients of a layer"].per_step == 32
    assert found["dp", "all_gather", "parameters of an embedding"].size_bytes == 2 * 128256 * 4096


def test_megatrons_gradients_go_in_buckets() -> None:
    found = calls("dp=8", strategy="megatron")
    gradients = found["dp", "reduce_scatter", "gradients of a bucket"]
    total = gradients.size_bytes * gradients.per_step
    assert total == pytest.approx(4 * 8_030_261_248, rel=0.01)
    assert gradients.size_bytes / 4 <= 40_000_000
    assert (
        calls("dp=128", strategy="megatron")["dp", "reduce_scatter", "gradients of a bucket"].size_bytes
        > 4 * 1e8
    )


def test_tensor_parallelism_is_that_of_aicb() -> None:
    """gpt 7B in aliyun/aicb: 32 layers of 4096, tp 8, 2 x 2048 tokens, sequence parallel.

    MockedMegatron.py: per layer 6 all_gather (2 forward, 4 backward) and 4 reduce_scatter of 2 * s * b * h bytes.
    """
    found = calls("tp=8", {**LLAMA, "num_key_value_heads": 32}, "megatron", batch=2, sequence=2048)
    gather = found["tp", "all_gather", "activations, sequence parallel"]
    scatter = found["tp", "reduce_scatter", "activations, sequence parallel"]
    assert (gather.per_step, scatter.per_step) == (6 * 32, 4 * 32)
    assert gather.size_bytes == scatter.size_bytes == 2 * 2048 * 2 * 4096


def test_stages_share_layers_and_hand_on_their_part() -> None:
    found = calls("pp=4,tp=8")
    assert found["pp", "send_recv", "activations between two stages"].size_bytes == 8192 * 4096 * 2 // 8
    assert found["pp", "send_recv", "activations between two stages"].per_step == 2
    assert found["tp", "all_gather", "activations, sequence parallel"].per_step == 6 * 8


def test_experts_and_context() -> None:
    found = calls("ep=8,cp=2", MIXTRAL)
    tokens = found["ep", "all_to_all", "tokens to their experts and back"]
    assert (tokens.size_bytes, tokens.per_step) == (8192 // 2 * 4096 * 2 * 2, 4 * 32)
    ring = found["cp", "send_recv", "keys and values of a ring step"]
    assert (ring.size_bytes, ring.per_step) == (2 * 4096 * 8 * 128 * 2, 3 * 32)
    assert not [key for key in calls("ep=8") if key[0] == "ep"]  # a model without experts


def test_replicas_add_up_what_is_sharded() -> None:
    found = calls("dp_replicate=2,dp_shard=4")
    assert found["dp_replicate", "all_reduce", "gradients of a layer"].size_bytes == 218_112_000 // 4 * 4


def test_what_has_no_rule_is_said() -> None:
    assert unruled(parse_mesh("dp=2,head=4,one=1")) == ("head",)
