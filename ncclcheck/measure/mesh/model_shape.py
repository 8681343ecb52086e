"""The shape of a model from its `config.json`, as Hugging Face transformers writes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ncclcheck.model.benchmarks.model_shape import ModelShape
from ncclcheck.model.errors import UsageError

_MOST = 1 << 40
# Their feed-forward part has two matrices; that of Llama, Mistral, Qwen, Gemma, DeepSeek and most newer ones three.
_UNGATED = (
    "bloom",
    "falcon",
    "gpt2",
    "gpt_bigcode",
    "gpt_neo",
    "gpt_neox",
    "gptj",
    "mpt",
    "opt",
    "phi",
    "starcoder2",
)
_ELEMENT_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}
_LAYERS, _HIDDEN = ("num_hidden_layers", "n_layer", "n_layers"), ("hidden_size", "n_embd", "d_model")
_HEADS = ("num_attention_heads", "n_head", "n_heads")
_EXPERTS = ("num_local_experts", "num_experts", "n_routed_experts")


def model_shape(config: Mapping[str, Any], file: str) -> ModelShape:
    """Return the shape that `config` describes. Raises UsageError, which names `file` and what is missing."""
    inner = config.get("text_config")  # of a model that sees, too
    if isinstance(inner, dict):
        config = {**config, **inner}
    hidden, heads = _number(config, _HIDDEN, file), _number(config, _HEADS, file)
    experts = _optional(config, _EXPERTS, 0, file)
    per_expert = _optional(config, ("moe_intermediate_size",), 0, file) if experts else 0
    ffn = per_expert or _optional(config, ("intermediate_size", "ffn_dim", "n_inner"), 4 * hidden, file)
    kind = str(config.get("model_type", "")).lower()
    dtype = str(config.get("torch_dtype") or config.get("dtype") or "bfloat16").removeprefix("torch.")
    if dtype not in _ELEMENT_BYTES:
        raise UsageError(
            f"--model {file}: torch_dtype {dtype!r}: expected one of {', '.join(_ELEMENT_BYTES)}"
        )
    per_token = _optional(config, ("num_experts_per_tok", "moe_topk"), 1, file) if experts else 0
    return ModelShape(
        layers=_number(config, _LAYERS, file),
        hidden=hidden,
        heads=heads,
        kv_heads=_optional(config, ("num_key_value_heads", "num_kv_heads"), heads, file),
        head_dim=_optional(config, ("head_dim",), max(1, hidden // heads), file),
        ffn=ffn,
        vocabulary=_number(config, ("vocab_size",), file),
        gated=kind not in _UNGATED,
        tied=bool(config.get("tie_word_embeddings", kind in _UNGATED)),
        element_bytes=_ELEMENT_BYTES[dtype],
        experts=experts,
        experts_per_token=per_token,
    )


def _number(config: Mapping[str, Any], names: tuple[str, ...], file: str) -> int:
    found = _optional(config, names, 0, file)
    if not found:
        raise UsageError(
            f"--model {file}: it has no {' or '.join(names)}: is it the config.json of a transformer?"
        )
    return found


def _optional(config: Mapping[str, Any], names: tuple[str, ...], usual: int, file: str) -> int:
    """Return the first of these numbers that is given."""
    for name in names:
        value = config.get(name)
        if value is None:
            continue
        if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= _MOST:
            raise UsageError(f"--model {file}: {name} is {value!r}: expected a whole number above 0")
        return value
    return usual
