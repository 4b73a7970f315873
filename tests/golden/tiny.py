#!/usr/bin/env python3
"""tests/golden/tiny.py -- Tiny checkpoints with random weights, one for each recipe, and the
logits that transformers gives with them.

One needs it to make the folders llama_tiny-VARIANT-RECIPE anew, never to build or test. It
wants torch, transformers, gguf and safetensors (README.md names the versions):

  ref/bin/python tests/golden/tiny.py                 all of them
  ref/bin/python tests/golden/tiny.py groups-q4_0     those named

f32 is written by safetensors under Hugging Face's names; the others by gguf, which quantizes
them, as llama.cpp's converter names and orders them: rows of q and k in pairs. What transformers
gets is read back from the file."""
import math
import re
import sys
from pathlib import Path

import gguf
import torch
from gguf import GGMLQuantizationType, GGUFReader, GGUFWriter
from safetensors.torch import load_file, save_file
from transformers import LlamaConfig, LlamaForCausalLM

GOLDEN = Path(__file__).resolve().parent
sys.path.insert(0, str(GOLDEN.parent.parent / "tools"))
import oracle

# The variants of models/llama_tiny.lua, said again: weights of other sizes would not bind.
SHAPES = {
    "small": dict(num_hidden_layers=2, hidden_size=40, intermediate_size=56, vocab_size=96,
                  num_attention_heads=6, num_key_value_heads=3, head_dim=8),
    "groups": dict(num_hidden_layers=3, hidden_size=64, intermediate_size=160, vocab_size=200,
                   num_attention_heads=6, num_key_value_heads=2, head_dim=16),
}
THETA, EPS, CONTEXT = 10000.0, 1e-5, 1024

# variant, recipe, seed, lengths of the prompts.
CHECKPOINTS = [
    ("small", "f32", 1000, (48, 48, 48)),
    ("groups", "f32", 1001, (48, 48, 48)),
    ("groups", "f16", 1002, (48, 7, 1)),
    ("groups", "bf16", 1003, (48, 7, 1)),
    ("groups", "q8_0", 1004, (48, 7, 1)),
    ("groups", "q4_1", 1005, (48, 7, 1)),
    ("groups", "q4_0", 1006, (48, 7, 1)),
]

GGUF_NAME = {v: k for k, v in (oracle.GGUF_BLOCK | oracle.GGUF_AROUND).items()}


def gguf_name(name):
    if name in GGUF_NAME:
        return GGUF_NAME[name]
    layer, role = re.fullmatch(r"model\.layers\.(\d+)\.(.+)\.weight", name).groups()
    return f"blk.{layer}.{GGUF_NAME[role]}.weight"


def type_of(name, recipe):
    """The mixture of gen/formats/recipes.lua, said again."""
    if "norm" in name:
        return GGMLQuantizationType.F32
    if name == "lm_head.weight" and recipe.startswith("q"):
        return GGMLQuantizationType.Q8_0
    return GGMLQuantizationType[recipe.upper()]


def in_pairs(name, rows, sizes):
    """GGUF keeps RoPE pairs adjacent: LlamaModel.permute of llama.cpp's converter."""
    n_heads = {"q_proj": sizes["num_attention_heads"],
               "k_proj": sizes["num_key_value_heads"]}.get(name.split(".")[-2])
    if not n_heads:
        return rows
    return (rows.reshape(n_heads, 2, rows.shape[0] // n_heads // 2, rows.shape[1])
            .swapaxes(1, 2).reshape(rows.shape))


# ---- A model, its file, and what comes back of it -----------------------------------------

def random_model(sizes, seed):
    # The constructor wants hidden_size to be n_heads * head_dim; the model does not.
    d_q = sizes["num_attention_heads"] * sizes["head_dim"]
    config = LlamaConfig(
        **{**sizes, "hidden_size": d_q}, max_position_embeddings=CONTEXT, rms_norm_eps=EPS,
        rope_parameters={"rope_type": "default", "rope_theta": THETA},
        tie_word_embeddings=False, attn_implementation="eager", torch_dtype=torch.float32)
    config.hidden_size = sizes["hidden_size"]
    torch.manual_seed(seed)
    model = LlamaForCausalLM(config).to(torch.float32).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() == 1:  # a norm: around one, no two equal
                weight.copy_(1.0 + 0.2 * torch.randn(weight.shape))
            else:  # keeps the scale of what goes through it
                weight.copy_(torch.randn(weight.shape) / math.sqrt(weight.shape[1]))
    return model


def add_vocabulary(writer, n_tokens):
    """As many of byte-level BPE's 256 letters as there are ids, but for a token of two."""
    letters = [chr(c) for c in range(33, 0x200) if chr(c).isprintable()][:n_tokens - 1]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(letters + [letters[0] + letters[1]])
    writer.add_token_types([gguf.TokenType.NORMAL] * n_tokens)
    writer.add_token_merges([letters[0] + " " + letters[1]])


def write_gguf(path, model, sizes, recipe):
    writer = GGUFWriter(path, "llama")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(sizes["hidden_size"])
    writer.add_block_count(sizes["num_hidden_layers"])
    writer.add_feed_forward_length(sizes["intermediate_size"])
    writer.add_head_count(sizes["num_attention_heads"])
    writer.add_head_count_kv(sizes["num_key_value_heads"])
    writer.add_key_length(sizes["head_dim"])
    writer.add_value_length(sizes["head_dim"])
    writer.add_rope_dimension_count(sizes["head_dim"])
    writer.add_rope_freq_base(THETA)
    writer.add_layer_norm_rms_eps(EPS)
    writer.add_vocab_size(sizes["vocab_size"])
    add_vocabulary(writer, sizes["vocab_size"])
    for name, weight in model.state_dict().items():
        rows, kind = in_pairs(name, weight.numpy(), sizes), type_of(name, recipe)
        writer.add_tensor(gguf_name(name), gguf.quantize(rows, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@torch.no_grad()
def logits_of(model, prompts):
    return torch.cat([model(torch.tensor([p]), use_cache=False).logits[0] for p in prompts])


def make(variant, recipe, seed, lengths):
    sizes, folder = SHAPES[variant], GOLDEN / f"llama_tiny-{variant}-{recipe}"
    folder.mkdir(exist_ok=True)
    model = random_model(sizes, seed)
    if recipe == "f32":
        save_file(model.state_dict(), folder / "model.safetensors", metadata={"format": "pt"})
        weights = load_file(folder / "model.safetensors")
    else:
        write_gguf(folder / "model.gguf", model, sizes, recipe)
        weights = oracle.gguf_weights(GGUFReader(folder / "model.gguf"))
    for name, weight in model.state_dict().items():  # four bits are off by 0.06 at most
        assert torch.allclose(weights[name], weight, rtol=0, atol=0.1), name
    prompts = torch.randint(0, sizes["vocab_size"], (len(lengths), max(lengths))).tolist()
    prompts = [p[:n] for p, n in zip(prompts, lengths)]
    (folder / "prompts.txt").write_text("".join(" ".join(map(str, p)) + "\n" for p in prompts))

    model.load_state_dict(weights)
    logits = logits_of(model, prompts)
    (folder / "logits.f32").write_bytes(logits.numpy().astype("<f4").tobytes())

    error = (logits_of(model.to(torch.bfloat16), prompts).double() - logits.double()).abs()
    oracle.write_json(folder / "reference.json", {
        "made_with": oracle.versions(),
        "error_in_bf16": {"rms": round(float(error.square().mean().sqrt()), 6),
                          "max": round(float(error.max()), 6)}})
    print(f"{folder.name}: logits of scale {logits.std():.3f}, in bf16 off by "
          f"{error.square().mean().sqrt():.4f} rms, {error.max():.4f} at most", file=sys.stderr)


for variant, recipe, seed, lengths in CHECKPOINTS:
    if not sys.argv[1:] or f"{variant}-{recipe}" in sys.argv[1:]:
        make(variant, recipe, seed, lengths)
