#!/usr/bin/env python3
"""tests/golden/gemma4/configs.py -- config.json of Gemma 4 as transformers writes it.

Makes VARIANT.config.json beside it: of the four published models with encoders, from the same
sizes as shapes.py; of 26B-A4B cut to 6 layers; and of two tiny ones, tiny-VARIANT, in which no
two sizes are equal.
"""
import json
import tempfile
from pathlib import Path

from transformers import Gemma4Config

from shapes import GEMMA4, text

HERE = Path(__file__).parent
CONTEXT = {"e2b": 131072, "e4b": 131072, "26b-a4b": 262144, "31b": 262144}


def vision(layers, hidden, intermediate, heads, head, positions, **more):
    return {"num_hidden_layers": layers, "hidden_size": hidden, "intermediate_size": intermediate,
            "num_attention_heads": heads, "num_key_value_heads": heads, "head_dim": head,
            "position_embedding_size": positions, **more}


AUDIO = {"num_hidden_layers": 2, "hidden_size": 48, "num_attention_heads": 3,
         "output_proj_dims": 56, "subsampling_conv_channels": [128, 12]}

TINY = {
    "tiny-e2b": (
        {**text(9, 48, 72, 3, 1, None, 3, 20, num_kv_shared_layers=4, use_double_wide_mlp=True,
                hidden_size_per_layer_input=8, vocab_size_per_layer_input=136),
         "head_dim": 16, "global_head_dim": 24, "vocab_size": 136, "rms_norm_eps": 1e-5,
         "final_logit_softcapping": 20.0},
        vision(2, 40, 88, 5, 12, 64, use_clipped_linears=True), AUDIO),
    "tiny-26b-a4b": (
        {**text(6, 64, 88, 8, 4, 2, 3, 25, enable_moe_block=True, num_experts=10, top_k_experts=3,
                moe_intermediate_size=32, hidden_size_per_layer_input=0, attention_k_eq_v=True,
                use_bidirectional_attention="vision"),
         "head_dim": 8, "global_head_dim": 40, "vocab_size": 160},
        vision(3, 56, 104, 4, 16, 72, standardize=True), None),
}


def write(name, decoder, images, audio, context):
    decoder = {**decoder, "max_position_embeddings": context}
    config = Gemma4Config(text_config=decoder, vision_config=images, audio_config=audio)
    with tempfile.TemporaryDirectory() as folder:
        config.save_pretrained(folder)
        values = json.loads((Path(folder) / "config.json").read_text())
    (HERE / f"{name}.config.json").write_text(json.dumps(values) + "\n")


for variant, parts in GEMMA4.items():
    write(variant, *parts, CONTEXT[variant])
decoder, images, audio = GEMMA4["26b-a4b"]
cut = {**decoder, "num_hidden_layers": 6, "layer_types": decoder["layer_types"][:6]}
write("26b-a4b-6-layers", cut, images, audio, CONTEXT["26b-a4b"])
for variant, parts in TINY.items():
    write(variant, *parts, 1024)
