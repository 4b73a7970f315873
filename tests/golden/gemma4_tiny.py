#!/usr/bin/env python3
"""tests/golden/gemma4_tiny.py -- Tiny Gemma 4 checkpoints with random weights in bf16, one for
each published shape, the logits that transformers gives with them in f32, and what its vision
encoder makes of two images.

One needs it to make the folders gemma4_tiny-VARIANT-bf16 anew, never to build or test. It wants
torch, transformers and safetensors (README.md names the versions):

  ref/bin/python tests/golden/gemma4_tiny.py            all of them
  ref/bin/python tests/golden/gemma4_tiny.py e2b 31b    those named

Names are those of the releases: the decoder below model.language_model, keys and values also in
layers that share another's, no lm_head.

images.txt has a line for each image: soft tokens in a row of it, and rows. Its patches are in the
order of the engine's: soft token after soft token, of each 3 x 3 patches. Byte i of all pixels, one
image behind the other, is the highest of i * 2654435761 mod 2^32: no file is needed."""
import math
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import Gemma4ForCausalLM, Gemma4TextConfig
from transformers.models.gemma4.configuration_gemma4 import Gemma4VisionConfig
from transformers.models.gemma4.modeling_gemma4 import Gemma4MultimodalEmbedder, Gemma4VisionModel

GOLDEN = Path(__file__).resolve().parent
sys.path.insert(0, str(GOLDEN.parent.parent / "tools"))
import oracle

# The variants of models/gemma4_tiny.lua, said again: weights of other sizes would not bind.
SHAPES = {
    "e2b": dict(
        num_hidden_layers=9, hidden_size=48, intermediate_size=72, num_attention_heads=3,
        num_key_value_heads=1, head_dim=16, global_head_dim=24, sliding_window=20, vocab_size=136,
        num_kv_shared_layers=4, use_double_wide_mlp=True, hidden_size_per_layer_input=8, pattern=3),
    "e4b": dict(
        num_hidden_layers=8, hidden_size=56, intermediate_size=104, num_attention_heads=4,
        num_key_value_heads=2, head_dim=16, global_head_dim=32, sliding_window=67, vocab_size=152,
        num_kv_shared_layers=2, hidden_size_per_layer_input=24, pattern=4),
    "26b-a4b": dict(
        num_hidden_layers=6, hidden_size=64, intermediate_size=88, num_attention_heads=8,
        num_key_value_heads=4, num_global_key_value_heads=2, head_dim=8, global_head_dim=40,
        sliding_window=25, vocab_size=160, attention_k_eq_v=True, enable_moe_block=True,
        num_experts=10, top_k_experts=3, moe_intermediate_size=32,
        use_bidirectional_attention="vision", pattern=3),
    "31b": dict(
        num_hidden_layers=6, hidden_size=72, intermediate_size=112, num_attention_heads=12,
        num_key_value_heads=6, num_global_key_value_heads=3, head_dim=8, global_head_dim=16,
        sliding_window=33, vocab_size=168, attention_k_eq_v=True,
        use_bidirectional_attention="vision", pattern=3),
}
VISION = {
    "small": dict(
        num_hidden_layers=2, hidden_size=60, num_attention_heads=2, num_key_value_heads=2,
        head_dim=40, intermediate_size=92, position_embedding_size=22, use_clipped_linears=True),
    "large": dict(
        num_hidden_layers=3, hidden_size=52, num_attention_heads=5, num_key_value_heads=5,
        head_dim=24, intermediate_size=76, position_embedding_size=26, standardize=True),
}
VISION_OF = {"e2b": "small", "e4b": "small", "26b-a4b": "large", "31b": "large"}
IMAGES = [(3, 2), (2, 5)]  # soft tokens in a row, rows
CONTEXT, LENGTHS = 1024, (150, 40, 7, 1)
PREFIX = "model.language_model."


def text_config(sizes):
    sizes = {"hidden_size_per_layer_input": 0, **sizes}
    pattern, n_layers = sizes.pop("pattern"), sizes["num_hidden_layers"]
    kinds = ["full_attention" if (i + 1) % pattern == 0 else "sliding_attention"
             for i in range(n_layers)]
    return Gemma4TextConfig(
        **sizes, layer_types=kinds, max_position_embeddings=CONTEXT, rms_norm_eps=1e-6,
        final_logit_softcapping=30.0, vocab_size_per_layer_input=sizes["vocab_size"],
        tie_word_embeddings=True, attn_implementation="eager")


def random_values(name, weight):
    """What keeps the scale of what goes through it, and no two equal; as bf16 holds them."""
    if weight.dim() == 1:  # norms, scales: around one
        values = 1.0 + 0.2 * torch.randn(weight.shape)
        if "q_norm" in name:  # scores aren't scaled: else softmax would be a maximum, or nearly
            values *= 0.5
    else:
        values = torch.randn(weight.shape) / math.sqrt(weight.shape[-1])
    return values.to(torch.bfloat16)


def random_model(sizes, seed):
    model = Gemma4ForCausalLM(text_config(sizes)).to(torch.float32).eval()
    torch.manual_seed(seed)
    weights = {name: random_values(name, weight) for name, weight in model.state_dict().items()
               if name != "lm_head.weight"}
    model.load_state_dict(weights, strict=False)
    model.tie_weights()
    # The checkpoints are in bf16, and so is the scale of their embeddings.
    embed = model.model.embed_tokens
    embed.embed_scale = embed.embed_scale.to(torch.bfloat16).to(torch.float32)
    return model, weights


def unread(sizes):
    """Keys and values of the layers that share another's: the files have them."""
    first = sizes["num_hidden_layers"] - sizes.get("num_kv_shared_layers", 0)
    for layer in range(first, sizes["num_hidden_layers"]):
        full = (layer + 1) % sizes["pattern"] == 0
        d = sizes["global_head_dim"] if full else sizes["head_dim"]
        at = f"{PREFIX}layers.{layer}.self_attn."
        for role in ("k_proj", "v_proj"):
            yield at + role + ".weight", (sizes["num_key_value_heads"] * d, sizes["hidden_size"])
        yield at + "k_norm.weight", (d,)


@torch.no_grad()
def logits_of(model, prompts):
    return torch.cat([model(torch.tensor([p]), use_cache=False).logits[0] for p in prompts])


# ---- The vision encoder -------------------------------------------------------------------

class Vision(torch.nn.Module):
    """The tower and what comes behind it, under the releases' names."""

    def __init__(self, text, sizes):
        super().__init__()
        config = Gemma4VisionConfig(**sizes, attn_implementation="eager")
        self.vision_tower = Gemma4VisionModel(config)
        self.embed_vision = Gemma4MultimodalEmbedder(config, text)

    def forward(self, pixels, positions):
        soft = self.vision_tower(pixel_values=pixels, pixel_position_ids=positions)
        return self.embed_vision(soft.last_hidden_state)


def vision_values(name, weight):
    if weight.dim() == 0:  # bounds that cut off some of what comes
        bound = 0.8 + 0.5 * torch.rand(())
        return (-bound if name.endswith("_min") else bound).to(torch.bfloat16)
    if name.endswith("std_bias"):
        return (0.5 * torch.randn(weight.shape)).to(torch.bfloat16)
    if name.endswith("position_embedding_table"):
        return (0.5 * torch.randn(weight.shape)).to(torch.bfloat16)
    return random_values(name, weight)


def random_vision(variant, seed):
    model = Vision(text_config(dict(SHAPES[variant])), VISION[VISION_OF[variant]])
    model = model.to(torch.float32).eval()
    torch.manual_seed(seed)
    weights = {name: vision_values(name, weight) for name, weight in model.state_dict().items()}
    model.load_state_dict(weights)
    return model, {"model." + name: weight for name, weight in weights.items()}


def images(sizes):
    """Of each its pixels (1, patches, 768) and the patches' positions, (column, row)."""
    begin = 0
    for columns, rows in sizes:
        positions = [(3 * x + i, 3 * y + j) for y in range(rows) for x in range(columns)
                     for j in range(3) for i in range(3)]
        n = len(positions) * 768
        index = torch.arange(begin, begin + n, dtype=torch.int64)
        pixels = (index * 2654435761 % 2**32 >> 24).reshape(1, len(positions), 768)
        begin += n
        yield pixels.to(torch.float32) / 255, torch.tensor([positions])


@torch.no_grad()
def encoded_by(model, dtype):
    model = model.to(dtype)
    return torch.cat([model(pixels.to(dtype), positions) for pixels, positions in images(IMAGES)])


def difference(found, expected):
    error = (found.double() - expected.double()).abs()
    return {"rms": round(float(error.square().mean().sqrt()), 6), "max": round(float(error.max()), 6)}


# ---- One checkpoint -----------------------------------------------------------------------

def make(variant, seed):
    sizes, folder = SHAPES[variant], GOLDEN / f"gemma4_tiny-{variant}-bf16"
    folder.mkdir(exist_ok=True)
    model, weights = random_model(sizes, seed)
    file = {PREFIX + name.removeprefix("model."): weight for name, weight in weights.items()}
    file |= {name: random_values(name, torch.empty(shape)) for name, shape in unread(sizes)}

    prompts = [torch.randint(0, sizes["vocab_size"], (n,)).tolist() for n in LENGTHS]
    (folder / "prompts.txt").write_text("".join(" ".join(map(str, p)) + "\n" for p in prompts))
    logits = logits_of(model, prompts)
    (folder / "logits.f32").write_bytes(logits.numpy().astype("<f4").tobytes())

    vision, weights = random_vision(variant, seed + 500)
    save_file(file | weights, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "images.txt").write_text("".join(f"{x} {y}\n" for x, y in IMAGES))
    encoded = encoded_by(vision, torch.float32)
    (folder / "encoded.f32").write_bytes(encoded.numpy().astype("<f4").tobytes())

    error = difference(logits_of(model.to(torch.bfloat16), prompts), logits)
    encoder_error = difference(encoded_by(vision, torch.bfloat16), encoded)
    oracle.write_json(folder / "reference.json", {
        "made_with": oracle.versions(), "error_in_bf16": error,
        "encoder_error_in_bf16": encoder_error})
    print(f"{folder.name}: logits of scale {logits.std():.3f}, in bf16 off by {error['rms']:.4f} rms, "
          f"{error['max']:.4f} at most; soft tokens of scale {encoded.std():.3f}, in bf16 off by "
          f"{encoder_error['rms']:.4f} rms, {encoder_error['max']:.4f} at most", file=sys.stderr)


if __name__ == "__main__":
    for number, variant in enumerate(SHAPES):
        if not sys.argv[1:] or variant in sys.argv[1:]:
            make(variant, 2000 + number)
