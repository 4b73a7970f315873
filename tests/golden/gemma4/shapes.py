#!/usr/bin/env python3
"""tests/golden/gemma4/shapes.py -- Names and shapes of Gemma 4's weights, as transformers has them.

Makes VARIANT.shapes beside it: a line for each name, %d for the layer's number, then the shape
(- for a number) and the layers. Names are the releases': those of the modules, put back as
transformers' conversion_mapping reads them. What a release holds and transformers doesn't load,
keys and values of layers that share others', stands behind `ignored`, by the modules' names.

The modules are made on torch's meta device, from the sizes of the releases' config.json files.
"""
import re
import sys
from pathlib import Path

import torch
import transformers
from transformers import Gemma4Config, Gemma4ForConditionalGeneration
from transformers import Gemma4UnifiedConfig, Gemma4UnifiedForConditionalGeneration

SMALL = {}  # Gemma4VisionConfig's defaults
LARGE = {"hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27,
         "num_attention_heads": 16, "num_key_value_heads": 16, "head_dim": 72, "standardize": True}


def text(layers, hidden, intermediate, heads, kv_heads, global_kv_heads, pattern, window, **more):
    return {
        "num_hidden_layers": layers, "hidden_size": hidden, "intermediate_size": intermediate,
        "num_attention_heads": heads, "num_key_value_heads": kv_heads, "head_dim": 256,
        "global_head_dim": 512, "num_global_key_value_heads": global_kv_heads,
        "sliding_window": window, "vocab_size": 262144, "final_logit_softcapping": 30.0,
        "layer_types": ["full_attention" if (i + 1) % pattern == 0 else "sliding_attention"
                        for i in range(layers)], **more,
    }


SMALLER = {"hidden_size_per_layer_input": 256, "attention_k_eq_v": False}
LARGER = {"hidden_size_per_layer_input": 0, "attention_k_eq_v": True,
          "use_bidirectional_attention": "vision"}

GEMMA4 = {
    "e2b": (text(35, 1536, 6144, 8, 1, None, 5, 512, num_kv_shared_layers=20,
                 use_double_wide_mlp=True, **SMALLER), {**SMALL, "use_clipped_linears": True}, {}),
    "e4b": (text(42, 2560, 10240, 8, 2, None, 6, 512, num_kv_shared_layers=18, **SMALLER),
            {**SMALL, "use_clipped_linears": True}, {}),
    "26b-a4b": (text(30, 2816, 2112, 16, 8, 2, 6, 1024, enable_moe_block=True, num_experts=128,
                     top_k_experts=8, moe_intermediate_size=704, **LARGER), LARGE, None),
    "31b": (text(60, 5376, 21504, 32, 16, 4, 6, 1024, **LARGER), LARGE, None),
}

UNIFIED = text(48, 3840, 15360, 16, 8, 1, 6, 1024, attention_k_eq_v=True)

# transformers/conversion_mapping.py, "gemma4_unified", the other way round.
UNIFIED_NAMES = [
    (r"embed_vision\.multimodal_embedder\.", "embed_vision."),
    (r"embed_vision\.(patch_|pos_)", r"vision_embedder.\1"),
]


def compressed(names):
    """{ name: shape } -> { (name with %d, shape): [layers] }, in the order of the modules."""
    rows = {}
    for name, shape in names.items():
        layer = re.search(r"\.layers\.(\d+)\.", name)
        if layer:
            name = name.replace(layer[0], ".layers.%d.", 1)
        rows.setdefault((name, shape), []).append(int(layer[1]) if layer else None)
    return rows


def ranges(layers):
    """[0, 1, 2, 4] -> 0-2 4"""
    if layers == [None]:
        return ""
    out = []
    for i in layers:
        if out and out[-1][1] == i - 1:
            out[-1][1] = i
        else:
            out.append([i, i])
    return " ".join(str(a) if a == b else f"{a}-{b}" for a, b in out)


def write(variant, model, renames=()):
    names = {}
    for name, tensor in model.state_dict().items():
        if name == "lm_head.weight":  # tied: the embedding
            continue
        for pattern, new in renames:
            name = re.sub(pattern, new, name)
        names[name] = tuple(tensor.shape)
    ignored = sorted(model.model.language_model._keys_to_ignore_on_load_unexpected,
                     key=lambda name: (name.split(".")[-1], int(name.split(".")[1])))
    total = sum(torch.Size(shape).numel() for shape in names.values() if shape)
    lines = [f"# {type(model).__name__}, transformers {transformers.__version__}; "
             f"{total} elements, numbers not counted"]
    for (name, shape), layers in compressed(names).items():
        dims = "x".join(map(str, shape)) or "-"
        lines.append(f"{name} {dims} {ranges(layers)}".rstrip())
    rows = compressed({name: None for name in ["." + name + "." for name in ignored]})
    for (name, _), layers in rows.items():
        lines.append(f"ignored {name.strip('.')} {ranges(layers)}")
    path = Path(__file__).parent / f"{variant}.shapes"
    path.write_text("\n".join(lines) + "\n")
    print(variant, total, file=sys.stderr)


def main():
    with torch.device("meta"):
        for variant, (decoder, vision, audio) in GEMMA4.items():
            config = Gemma4Config(text_config=decoder, vision_config=vision, audio_config=audio)
            write(variant, Gemma4ForConditionalGeneration(config))
        config = Gemma4UnifiedConfig(text_config=UNIFIED, vision_config={}, audio_config={})
        write("12b", Gemma4UnifiedForConditionalGeneration(config), UNIFIED_NAMES)


if __name__ == "__main__":
    main()
