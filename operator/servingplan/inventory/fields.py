"""A model's config.json by field: names that differ between families, defaults that families leave out.

In: the parsed file. Out: `Config`, whose numbers are checked where they are read. Defaults are those of the
configuration classes of Hugging Face transformers, which config.json leaves out where a model does not differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from servingplan.inventory.files import refuse

TEXT_CONFIGS = ("text_config", "llm_config", "language_config", "thinker_config")
"""Where multimodal models keep the config of their decoder."""

SPELLINGS: Mapping[str, Sequence[str]] = {
    "hidden": ("hidden_size", "n_embd", "d_model", "dim"),
    "layers": ("num_hidden_layers", "n_layer", "n_layers", "num_layers"),
    "heads": ("num_attention_heads", "n_head", "n_heads", "num_heads"),
    "kv_heads": ("num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num", "n_kv_heads"),
    "head_size": ("head_dim", "kv_channels", "attention_head_dim"),
    "intermediate": ("intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size"),
    "vocabulary": ("vocab_size", "padded_vocab_size"),
    "positions": ("max_position_embeddings", "n_positions", "seq_length", "max_sequence_length", "n_ctx"),
}

LARGEST = 10**9
"""No count in a config is larger."""

MOST_LAYERS = 10_000

_TIED = {"tie_word_embeddings": True}
FAMILY_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "gemma": {**_TIED, "head_dim": 256},
    "gemma2": {**_TIED, "head_dim": 256, "num_key_value_heads": 4, "num_attention_heads": 8, "sliding_window": 4096},
    "gemma3_text": {
        **_TIED,
        "vocab_size": 262208,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 256,
        "max_position_embeddings": 131072,
        "sliding_window": 4096,
    },
    "cohere": _TIED,
    "cohere2": {**_TIED, "sliding_window": 4096},
    "mistral": {"num_key_value_heads": 8, "sliding_window": 4096},
    "mixtral": {"num_key_value_heads": 8, "num_local_experts": 8, "num_experts_per_tok": 2},
    "llama4_text": {
        "num_key_value_heads": 8,
        "head_dim": 128,
        "attention_chunk_size": 8192,
        "intermediate_size_mlp": 16384,
        "interleave_moe_layer_step": 1,
    },
    "gpt_oss": {"head_dim": 64, "sliding_window": 128, "num_key_value_heads": 8},
    "gpt2": _TIED,
    "qwen3": {"head_dim": 128},
    "qwen3_moe": {"head_dim": 128},
    "qwen3_next": {"head_dim": 256, "num_key_value_heads": 2},
    "deepseek_v2": {"q_lora_rank": 1536},
    "jamba": {"attn_layer_period": 8, "attn_layer_offset": 4, "expert_layer_period": 2, "expert_layer_offset": 1},
}

_REFUSED: Mapping[str, str] = {
    "deepseek_v4": "keeps compressed caches whose layout these rules do not know",
    "whisper": "is an encoder with a decoder, not a language model",
    "t5": "is an encoder with a decoder",
    "bert": "is an encoder: it has no KV cache",
    "roberta": "is an encoder: it has no KV cache",
    "xlm-roberta": "is an encoder: it has no KV cache",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """config.json of one model: the decoder's fields first, then those of the whole model."""

    path: Path
    whole: Mapping[str, Any]
    text: Mapping[str, Any]

    @property
    def family(self) -> str:
        """The decoder's ``model_type``."""
        return str(self.text.get("model_type") or self.whole.get("model_type") or "")

    @property
    def multimodal(self) -> bool:
        """Whether there is an encoder for images or sound."""
        return any(isinstance(self.whole.get(key), Mapping) for key in ("vision_config", "audio_config"))

    def get(self, name: str) -> Any:
        """A field as written, or the family's default; None where there is neither."""
        if name in self.text:
            # Null is a statement too: no window, no rank.
            return self.text[name]
        if self.whole.get(name) is not None:
            return self.whole[name]
        return FAMILY_DEFAULTS.get(self.family, {}).get(name)

    def count(self, name: str, default: int | None = None) -> int:
        """A positive number under any of its spellings. Raises InputError where there is none, or no number."""
        spellings = SPELLINGS.get(name, (name,))
        for spelling in spellings:
            value = self.get(spelling)
            if value is not None:
                return self._positive(spelling, value)
        if default is None:
            self.refuse("FieldMissing", f"{spellings[0]} is missing: name the config.json of a decoder model")
        return default

    def optional(self, name: str) -> int | None:
        """A positive number, or None where it is missing, null or 0."""
        value = self.get(name)
        return None if value is None or value is False or value == 0 else self._positive(name, value)

    def flag(self, name: str) -> bool:
        """A boolean; missing is False."""
        return self.get(name) is True

    def whole_number(self, name: str, section: Mapping[str, Any] | None = None) -> int:
        """A whole number of this config or a section of it, 0 included. Raises InputError where it is none."""
        value = self.get(name) if section is None else section.get(name)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= LARGEST:
            self.refuse("InvalidField", f"{name} is {value!r}, not a whole number: download the file again")
        return int(value)

    def sequence(self, name: str) -> Sequence[Any]:
        """A list; empty where it is missing."""
        value = self.get(name)
        return value if isinstance(value, list) else ()

    def section(self, name: str) -> Mapping[str, Any]:
        """An object; empty where it is missing."""
        value = self.get(name)
        return value if isinstance(value, Mapping) else {}

    def refuse(self, reason: str, message: str) -> NoReturn:
        """Raise the one problem of this file."""
        refuse(self.path, reason, message)

    def _positive(self, name: str, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= LARGEST:
            self.refuse("InvalidField", f"{name} is {value!r}, not a positive whole number: download the file again")
        return int(value)


def read_config(path: Path, content: Mapping[str, Any]) -> Config:
    """The config of a decoder. Raises InputError for what is none."""
    text: Mapping[str, Any] = content
    for key in TEXT_CONFIGS:
        while isinstance(text.get(key), Mapping):
            text = text[key]
    config = Config(path=path, whole=content, text=text)
    if "model_type" not in content and "architectures" not in content and "hidden_size" not in text:
        refuse(path, "NoModelConfig", "it has no model_type: name a model's config.json, or the folder that holds it")
    for family in (config.family, str(content.get("model_type", ""))):
        if family in _REFUSED:
            refuse(path, "NotSupported", f"{family} {_REFUSED[family]}: size it with a log of vLLM, or measure it")
    if content.get("is_encoder_decoder") is True:
        refuse(path, "NotSupported", "it is an encoder with a decoder: only decoder models can be sized")
    return config
