#!/usr/bin/env python3
"""tests/golden/qwen3_5/shapes.py -- Names and shapes of Qwen3.5's weights, as transformers has them.

Makes VARIANT.shapes beside it: a line for each name, %d for the layer's number, then the shape
and the layers. A release's mtp.* isn't there: transformers doesn't load it.

The modules are made on torch's meta device, from the sizes of the releases' config.json files:
Qwen/Qwen3.6-27B and Qwen/Qwen3.6-35B-A3B.
"""
import re
import sys
from pathlib import Path

import torch
import transformers
from transformers import Qwen3_5Config, Qwen3_5ForConditionalGeneration
from transformers import Qwen3_5MoeConfig, Qwen3_5MoeForConditionalGeneration

TEXT = {
    "vocab_size": 248320, "max_position_embeddings": 262144, "head_dim": 256,
    "linear_num_key_heads": 16, "linear_key_head_dim": 128, "linear_value_head_dim": 128,
    "linear_conv_kernel_dim": 4, "full_attention_interval": 4, "tie_word_embeddings": False,
}
VISION = {
    "depth": 27, "hidden_size": 1152, "intermediate_size": 4304, "num_heads": 16, "patch_size": 16,
    "temporal_patch_size": 2, "spatial_merge_size": 2, "num_position_embeddings": 2304,
}
VARIANTS = {
    "27b": (Qwen3_5ForConditionalGeneration, Qwen3_5Config, {
        "hidden_size": 5120, "intermediate_size": 17408, "num_hidden_layers": 64,
        "num_attention_heads": 24, "num_key_value_heads": 4, "linear_num_value_heads": 48}),
    "35b-a3b": (Qwen3_5MoeForConditionalGeneration, Qwen3_5MoeConfig, {
        "hidden_size": 2048, "num_hidden_layers": 40, "num_attention_heads": 16,
        "num_key_value_heads": 2, "linear_num_value_heads": 32, "num_experts": 256,
        "num_experts_per_tok": 8, "moe_intermediate_size": 512,
        "shared_expert_intermediate_size": 512}),
}


def ranges(layers):
    """[0, 1, 2, 4] -> ["0-2", "4"]"""
    out = []
    for i in layers:
        if out and out[-1][1] == i - 1:
            out[-1][1] = i
        else:
            out.append([i, i])
    return [str(a) if a == b else f"{a}-{b}" for a, b in out]


def write(variant, model):
    rows = {}  # (name with %d, shape) -> layers, in the order of the modules
    for name, tensor in model.named_parameters():
        layer = re.search(r"\.(?:layers|blocks)\.(\d+)\.", name)
        pattern = name.replace(f".{layer[1]}.", ".%d.", 1) if layer else name
        layers = rows.setdefault((pattern, tuple(tensor.shape)), [])
        if layer:
            layers.append(int(layer[1]))
    total = sum(tensor.numel() for tensor in model.parameters())
    lines = [f"# {type(model).__name__}, transformers {transformers.__version__}; {total} elements"]
    for (name, shape), layers in rows.items():
        lines.append(" ".join([name, "x".join(map(str, shape)), *ranges(layers)]))
    (Path(__file__).parent / f"{variant}.shapes").write_text("\n".join(lines) + "\n")
    print(variant, total, file=sys.stderr)


def main():
    with torch.device("meta"):
        for variant, (model, config, text) in VARIANTS.items():
            vision = {**VISION, "out_hidden_size": text["hidden_size"]}
            write(variant, model(config(text_config={**TEXT, **text}, vision_config=vision)))


if __name__ == "__main__":
    main()
