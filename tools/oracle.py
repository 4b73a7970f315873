#!/usr/bin/env python3
"""tools/oracle.py -- What transformers says: the golden data of tests/golden.

One needs it to make golden data anew, never to build or test. It wants torch, transformers,
gguf and safetensors (tests/golden/README.md names the versions):

  python3 -m venv ref && ref/bin/pip install torch transformers gguf safetensors
  ref/bin/python tools/oracle.py perplexity MODEL.gguf  512-token windows of two texts
  ref/bin/python tools/oracle.py greedy MODEL.gguf      10 continuations of 64 tokens

Everything runs in f32 on the CPU. A GGUF file is dequantized to f32 and its q and k rows
are put back into Hugging Face's order.
"""
import argparse
import gzip
import hashlib
import json
import math
import platform
import re
import sys
from pathlib import Path

import numpy as np
import torch
import transformers
from transformers import LlamaConfig, LlamaForCausalLM

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))
import reference_tokenizer

GOLDEN = ROOT / "tests" / "golden"
WINDOW = 512

TEXTS = {  # both come with Debian 12: base-files, debian-policy
    "gpl-3": "/usr/share/common-licenses/GPL-3",
    "debian-policy": "/usr/share/doc/debian-policy/policy.txt.gz",
}

PROMPTS = [
    "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face"
    "<|im_end|>\n<|im_start|>user\nWhy is the sky blue?<|im_end|>\n<|im_start|>assistant\n",
    "The capital of France is",
    "def quicksort(numbers):\n    \"\"\"Sort a list of numbers.\"\"\"\n",
    "Once upon a time, in a village at the foot of a mountain,",
    "Water boils at 100 degrees Celsius because",
    "Photosynthesis is the process by which plants",
    "The three laws of motion were stated by Isaac Newton in",
    "Dear Sir or Madam,\n\nI am writing to",
    "1, 1, 2, 3, 5, 8, 13,",
    "A good bread needs only four ingredients:",
]


def versions():
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
    }


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def write_json(path, data):
    """Lists of numbers on one line, everything else indented: small, and read in a diff."""
    text = json.dumps(data, indent=1, ensure_ascii=False)
    text = re.sub(r"\[\s+(-?[0-9.e+-]+(?:,\s+-?[0-9.e+-]+)*)\s+\]",
                  lambda m: "[" + re.sub(r"\s+", " ", m.group(1)) + "]", text)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n")
    print(f"{path.relative_to(ROOT)}: {path.stat().st_size} bytes", file=sys.stderr)


# ---- A GGUF file in transformers --------------------------------------------------------

GGUF_BLOCK = {
    "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
}
GGUF_AROUND = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}


def hugging_face_name(name):
    if name in GGUF_AROUND:
        return GGUF_AROUND[name]
    layer, role = re.fullmatch(r"blk\.(\d+)\.(\w+)\.weight", name).groups()
    return f"model.layers.{layer}.{GGUF_BLOCK[role]}.weight"


def unpair_rows(rows, n_heads):
    """GGUF keeps RoPE pairs adjacent, (2i, 2i+1); Hugging Face has (i, i + d/2)."""
    d_head = rows.shape[0] // n_heads
    return (rows.reshape(n_heads, d_head // 2, 2, rows.shape[1])
            .swapaxes(1, 2).reshape(rows.shape))


def gguf_key(reader, name):
    return reader.fields["llama." + name].contents()


def gguf_weights(reader):
    """All tensors in f32, under Hugging Face's names and in its order."""
    from gguf import dequantize
    heads = {".attn_q.": gguf_key(reader, "attention.head_count"),
             ".attn_k.": gguf_key(reader, "attention.head_count_kv")}
    weights = {}
    for tensor in reader.tensors:
        data = dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        for role, n_heads in heads.items():
            if role in tensor.name:
                data = unpair_rows(data, n_heads)
        weights[hugging_face_name(tensor.name)] = torch.from_numpy(np.ascontiguousarray(data))
    return weights


def load_gguf(path):
    from gguf import GGUFReader
    reader = GGUFReader(path)
    key = lambda name: gguf_key(reader, name)
    weights = gguf_weights(reader)
    tied = "lm_head.weight" not in weights
    if tied:
        weights["lm_head.weight"] = weights["model.embed_tokens.weight"]
    config = LlamaConfig(
        vocab_size=weights["model.embed_tokens.weight"].shape[0],
        hidden_size=key("embedding_length"), intermediate_size=key("feed_forward_length"),
        num_hidden_layers=key("block_count"),
        num_attention_heads=key("attention.head_count"),
        num_key_value_heads=key("attention.head_count_kv"),
        max_position_embeddings=key("context_length"),
        rms_norm_eps=float(np.float32(key("attention.layer_norm_rms_epsilon"))),
        rope_parameters={"rope_type": "default", "rope_theta": float(key("rope.freq_base"))},
        tie_word_embeddings=tied, attn_implementation="eager", torch_dtype=torch.float32)
    model = LlamaForCausalLM(config).to(torch.float32).eval()
    missing, unexpected = model.load_state_dict(weights, strict=False)
    assert not missing and not unexpected, (missing, unexpected)
    return model, reference_tokenizer.from_gguf(path)


@torch.no_grad()
def log_probs(model, ids):
    logits = model(torch.tensor([ids]), use_cache=False).logits[0]
    return torch.log_softmax(logits.double(), dim=-1)


# ---- Perplexity ---------------------------------------------------------------------------

def encode(tokenizer, text):
    """Ids, and the byte where each one's text ends."""
    encoding = tokenizer.encode(text, add_special_tokens=False)
    bytes_before = [0]
    for character in text:
        bytes_before.append(bytes_before[-1] + len(character.encode()))
    return encoding.ids, [bytes_before[end] for _, end in encoding.offsets]


def perplexity(arguments):
    """Tokenize the whole text once; windows of 512 tokens, one after the other, each run
    alone from position 0; score every token but the first of its window."""
    model, tokenizer = load_gguf(arguments.gguf)
    texts = []
    for name, path in TEXTS.items():
        raw = Path(path).read_bytes()
        raw = gzip.decompress(raw) if path.endswith(".gz") else raw
        ids, ends = encode(tokenizer, raw.decode())
        nll = []
        for begin in range(0, len(ids) - 1, WINDOW):
            window = ids[begin:begin + WINDOW]
            if len(window) < 2:
                break
            scores = log_probs(model, window[:-1] if len(window) < WINDOW else window)
            targets = torch.tensor(window[1:])
            nll.append(-float(scores[:len(targets)].gather(1, targets[:, None]).sum()))
            print(f"\r{name}: window {len(nll)} of {math.ceil(len(ids) / WINDOW)}",
                  end="", file=sys.stderr)
        print(file=sys.stderr)
        whole = len(ids) // WINDOW
        texts.append({
            "text": name, "path": path, "sha256": sha256(raw), "n_tokens": len(ids),
            "ids_sha256": sha256(np.array(ids, dtype="<i4").tobytes()),
            "window": WINDOW, "n_windows": whole, "n_scored": whole * (WINDOW - 1),
            "perplexity": math.exp(sum(nll[:whole]) / (whole * (WINDOW - 1))),
            "nll": [round(x, 5) for x in nll],
            "window_ends": ends[WINDOW - 1::WINDOW],  # in bytes
        })
        print(f"{name}: perplexity {texts[-1]['perplexity']:.4f}", file=sys.stderr)
    write_json(GOLDEN / "smollm2-135m" / "perplexity.json", {
        "model": Path(arguments.gguf).name,
        "model_sha256": sha256(Path(arguments.gguf).read_bytes()),
        "made_with": versions(), "texts": texts})


# ---- Greedy text --------------------------------------------------------------------------

GREEDY_TOKENS = 64
GREEDY_KEPT = 8  # of the most probable tokens at each position, to judge another's choice


@torch.no_grad()
def greedy(arguments):
    model, tokenizer = load_gguf(arguments.gguf)
    rows = []
    for prompt in PROMPTS:
        ids = tokenizer.encode(prompt, add_special_tokens=False).ids
        n_prompt = len(ids)
        for _ in range(GREEDY_TOKENS):  # the whole row again: no cache, nothing to go wrong
            ids.append(int(log_probs(model, ids)[-1].argmax()))
        scores = log_probs(model, ids)[n_prompt - 1:-1]
        best = scores.topk(GREEDY_KEPT)
        assert best.indices[:, 0].tolist() == ids[n_prompt:]
        rows.append({
            "prompt": prompt, "n_prompt": n_prompt, "ids": ids,
            "top_ids": best.indices.tolist(),
            "top_log_probs": [[round(x, 5) for x in row] for row in best.values.tolist()],
        })
        print(repr(tokenizer.decode(ids[n_prompt:], skip_special_tokens=False)), file=sys.stderr)
    write_json(GOLDEN / "smollm2-135m" / "greedy.json", {
        "model": Path(arguments.gguf).name, "n_tokens": GREEDY_TOKENS,
        "made_with": versions(), "rows": rows})


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, run in (("perplexity", perplexity), ("greedy", greedy)):
        command = commands.add_parser(name)
        command.add_argument("gguf")
        command.set_defaults(run=run)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    arguments.run(arguments)


if __name__ == "__main__":
    main()
