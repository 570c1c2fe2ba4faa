"""Recurrent layers of hybrid models: what state each keeps, and how many weights it has.

In: a config. Out: a `StateLayer` and parameters for its kind. Shapes are vLLM's (mamba_utils.py,
`MambaStateShapeCalculator`), over all GPUs of a replica.
"""

from __future__ import annotations

from servingplan.hardware.model import StateLayer, StateTensor
from servingplan.inventory.fields import Config

FLOAT32_BYTES = 4


def state_bytes(config: Config, dtype_bytes: int) -> int:
    """Bytes of an element of the recurrent state: float32 where the config asks for it."""
    asked = config.get("mamba_ssm_dtype") or config.get("mamba_ssm_cache_dtype")
    return FLOAT32_BYTES if asked == "float32" else dtype_bytes


def _state(convolution: int, recurrent: int, config: Config, dtype_bytes: int) -> StateLayer:
    return StateLayer(
        tensors=(
            StateTensor(elements=convolution, bytes_each=dtype_bytes),
            StateTensor(elements=recurrent, bytes_each=state_bytes(config, dtype_bytes)),
        )
    )


def mamba1(config: Config, dtype_bytes: int) -> tuple[StateLayer, int]:
    """Mamba: state and parameters of one layer."""
    hidden = config.count("hidden")
    inner = config.optional("intermediate_size") if config.family in {"mamba", "falcon_mamba"} else None
    inner = inner or hidden * (config.optional("mamba_expand") or config.optional("expand") or 2)
    size = config.optional("mamba_d_state") or config.optional("state_size") or 16
    kernel = config.optional("mamba_d_conv") or config.optional("conv_kernel") or 4
    rank = config.optional("mamba_dt_rank") if isinstance(config.get("mamba_dt_rank"), int) else None
    rank = rank or -(-hidden // 16)
    weights = 3 * hidden * inner + inner * (rank + 2 * size) + rank * inner + inner * (kernel + size)
    return _state(inner * (kernel - 1), inner * size, config, dtype_bytes), weights


def mamba2(config: Config, dtype_bytes: int) -> tuple[StateLayer, int]:
    """Mamba 2 (Bamba, Granite 4, Nemotron-H, Falcon-H1, Zamba 2): state and parameters of one layer."""
    hidden = config.count("hidden")
    heads = config.optional("mamba_n_heads") or config.optional("mamba_num_heads") or config.count("n_mamba_heads")
    expand = config.optional("mamba_expand") or config.optional("expand") or 2
    head = (
        config.optional("mamba_d_head")
        or config.optional("mamba_head_dim")
        or config.optional("mamba_headdim")
        or hidden * expand // heads
    )
    size = config.optional("mamba_d_state") or config.optional("ssm_state_size") or 128
    groups = config.optional("mamba_n_groups") or config.optional("n_groups") or config.optional("mamba_ngroups") or 1
    kernel = config.optional("mamba_d_conv") or config.optional("conv_kernel") or 4
    inner, mixed = heads * head, heads * head + 2 * groups * size
    weights = hidden * (inner + mixed + heads) + mixed * kernel + inner * hidden
    return _state(mixed * (kernel - 1), heads * head * size, config, dtype_bytes), weights


def delta_net(config: Config, dtype_bytes: int) -> tuple[StateLayer, int]:
    """Gated DeltaNet (Qwen3-Next, Qwen3.5): state and parameters of one layer."""
    hidden = config.count("hidden")
    keys = config.count("linear_num_key_heads") * config.count("linear_key_head_dim")
    heads, head = config.count("linear_num_value_heads"), config.count("linear_value_head_dim")
    kernel = config.count("linear_conv_kernel_dim", 4)
    mixed = 2 * keys + heads * head
    weights = hidden * (mixed + heads * head + 2 * heads) + mixed * kernel + heads * head * hidden
    recurrent = heads * head * config.count("linear_key_head_dim")
    return _state(mixed * (kernel - 1), recurrent, config, dtype_bytes), weights


def delta_attention(config: Config, dtype_bytes: int) -> tuple[StateLayer, int]:
    """Kimi Delta Attention: state, always float32, and parameters of one layer."""
    linear = config.section("linear_attn_config")
    hidden, kernel = config.count("hidden"), config.whole_number("short_conv_kernel_size", linear)
    heads, head = config.whole_number("num_heads", linear), config.whole_number("head_dim", linear)
    size = heads * head
    state = StateLayer(
        tensors=(
            StateTensor(elements=3 * size * (kernel - 1), bytes_each=dtype_bytes),
            StateTensor(elements=heads * head * head, bytes_each=FLOAT32_BYTES),
        )
    )
    return state, 4 * hidden * size + 3 * size * kernel + 2 * (hidden * head + head * size) + hidden * heads


def lightning(config: Config, dtype_bytes: int) -> tuple[StateLayer, int]:
    """Lightning attention (MiniMax): state and parameters of one layer."""
    hidden, heads = config.count("hidden"), config.count("heads")
    head = config.count("head_size", max(1, hidden // heads))
    state = StateLayer(tensors=(StateTensor(elements=heads * head * head, bytes_each=dtype_bytes),))
    return state, 5 * hidden * heads * head


def short_convolution(config: Config, dtype_bytes: int) -> tuple[StateLayer, int]:
    """Short convolution (LFM2): state and parameters of one layer."""
    hidden, kernel = config.count("hidden"), config.count("conv_L_cache", 3)
    state = StateLayer(tensors=(StateTensor(elements=hidden * (kernel - 1), bytes_each=dtype_bytes),))
    return state, 4 * hidden * hidden + hidden * kernel
