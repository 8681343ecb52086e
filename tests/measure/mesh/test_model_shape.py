"""The shape of a model from its config.json."""

from __future__ import annotations

from typing import Any

import pytest

from ncclcheck.measure.mesh.model_shape import model_shape
from ncclcheck.model.errors import UsageError

LLAMA: dict[str, Any] = {
    "model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32,
    "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256, "torch_dtype": "bfloat16",
    "tie_word_embeddings": False, "hidden_act": "silu",
}  # fmt: skip
GPT2: dict[str, Any] = {"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12, "n_inner": None,
                        "vocab_size": 50257, "torch_dtype": "float32"}  # fmt: skip
MIXTRAL: dict[str, Any] = {**LLAMA, "model_type": "mixtral", "num_local_experts": 8, "num_experts_per_tok": 2}


def test_llama() -> None:
    shape = model_shape(LLAMA, "config.json")
    assert (shape.layers, shape.hidden, shape.heads, shape.kv_heads, shape.head_dim) == (32, 4096, 32, 8, 128)
    assert (shape.ffn, shape.vocabulary, shape.gated, shape.tied, shape.element_bytes) == (
        14336,
        128256,
        True,
        False,
        2,
    )
    assert shape.experts == 0


def test_gpt2_has_other_names_and_two_matrices() -> None:
    shape = model_shape(GPT2, "config.json")
    assert (shape.layers, shape.kv_heads, shape.ffn, shape.gated, shape.tied) == (12, 12, 3072, False, True)
    assert shape.element_bytes == 4


def test_experts_and_a_model_that_sees() -> None:
    assert model_shape(MIXTRAL, "c").experts_per_token == 2
    assert model_shape({"model_type": "llava", "text_config": LLAMA}, "c").layers == 32


@pytest.mark.parametrize("broken", [
    {}, {**LLAMA, "hidden_size": "wide"}, {**LLAMA, "num_hidden_layers": -1}, {**LLAMA, "vocab_size": True},
    {**LLAMA, "torch_dtype": "int4"}, {**LLAMA, "hidden_size": 1 << 60},
])  # fmt: skip
def test_what_is_no_model_is_refused_by_name(broken: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"--model my\.json"):
        model_shape(broken, "my.json")
