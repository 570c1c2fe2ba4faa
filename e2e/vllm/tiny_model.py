"""Makes a language model that is small enough for tests: a Llama of two layers with random weights, 1.6 MB.

Run by the Python of vLLM's environment: ``tiny_model.py FOLDER``. The tokenizer is trained on the source text of
Python's own library; what the model says is noise, as long as it is asked to go on.
"""

from __future__ import annotations

import argparse
import email
import http.client
import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

LAYERS, HIDDEN, INTERMEDIATE = 2, 128, 256
HEADS, KV_HEADS, HEAD_SIZE = 4, 2, 32
VOCABULARY, LONGEST = 2048, 2048

SPECIAL = ("<s>", "</s>", "<pad>")
BEGIN, END, PADDING = range(3)

CHAT_TEMPLATE = "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n{% endfor %}assistant: "

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": HIDDEN,
    "intermediate_size": INTERMEDIATE,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KV_HEADS,
    "head_dim": HEAD_SIZE,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": LONGEST,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "tie_word_embeddings": False,
    "bos_token_id": BEGIN,
    "eos_token_id": END,
    "pad_token_id": PADDING,
    "torch_dtype": "bfloat16",
}


def write_model(folder: Path) -> None:
    """Write all files of the model into `folder`; the weights are the same each time."""
    folder.mkdir(parents=True, exist_ok=True)
    _tokenizer().save(str(folder / "tokenizer.json"))
    tokenizer = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": SPECIAL[BEGIN],
        "eos_token": SPECIAL[END],
        "pad_token": SPECIAL[PADDING],
        "model_max_length": LONGEST,
        "chat_template": CHAT_TEMPLATE,
    }
    _write(folder / "tokenizer_config.json", tokenizer)
    _write(folder / "config.json", CONFIG)
    _write(folder / "generation_config.json", {"bos_token_id": BEGIN, "eos_token_id": END})
    torch.manual_seed(0)
    save_file(dict(_weights()), str(folder / "model.safetensors"), metadata={"format": "pt"})


def _tokenizer() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    modules = (argparse, email, http.client, json, logging, subprocess)
    tokenizer.train_from_iterator((Path(str(module.__file__)).read_text() for module in modules), trainer)
    return tokenizer


def _weights() -> Iterator[tuple[str, torch.Tensor]]:
    yield "model.embed_tokens.weight", _random(VOCABULARY, HIDDEN)
    for layer in range(LAYERS):
        prefix = f"model.layers.{layer}"
        yield f"{prefix}.self_attn.q_proj.weight", _random(HEADS * HEAD_SIZE, HIDDEN)
        yield f"{prefix}.self_attn.k_proj.weight", _random(KV_HEADS * HEAD_SIZE, HIDDEN)
        yield f"{prefix}.self_attn.v_proj.weight", _random(KV_HEADS * HEAD_SIZE, HIDDEN)
        yield f"{prefix}.self_attn.o_proj.weight", _random(HIDDEN, HEADS * HEAD_SIZE)
        yield f"{prefix}.mlp.gate_proj.weight", _random(INTERMEDIATE, HIDDEN)
        yield f"{prefix}.mlp.up_proj.weight", _random(INTERMEDIATE, HIDDEN)
        yield f"{prefix}.mlp.down_proj.weight", _random(HIDDEN, INTERMEDIATE)
        yield f"{prefix}.input_layernorm.weight", _ones()
        yield f"{prefix}.post_attention_layernorm.weight", _ones()
    yield "model.norm.weight", _ones()
    yield "lm_head.weight", _random(VOCABULARY, HIDDEN)


def _random(*shape: int) -> torch.Tensor:
    return (torch.randn(*shape) * 0.02).to(torch.bfloat16)


def _ones() -> torch.Tensor:
    return torch.ones(HIDDEN, dtype=torch.bfloat16)


def _write(file: Path, content: object) -> None:
    file.write_text(json.dumps(content, indent=2))


if __name__ == "__main__":
    write_model(Path(sys.argv[1]))
