#!/usr/bin/env python3
"""tests/models/test_tiny_logits.py -- Tiny random checkpoints against transformers in f32 on
the same weights: two shapes, each recipe, each family that runs here.

With --exact --kv-cache-dtype f32 every logit is within 1e-4. In lower precision our error is at
most 1.5 times that of transformers in bf16, and the best token is the same wherever f32 sees
the second far enough behind."""
import json
import math
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import burin

# Both sides sum some hundred products of size one in f32, in another order.
TOLERANCE = 1e-4

# Transformers in bf16 keeps 8 bits of everything: weights, sums, the stream between layers. We
# keep f32 but for the KV cache in bf16 (a quarter of its error), and for what goes into a product
# with bf16 weights: bf16 (half of it), or with quantized ones: int8, where 32 share a scale, so
# that most have 5 or 6 bits (1.3 to 1.5 times; cut off instead of rounded it would be 2.4).
# Errors are root mean squares over all logits: the largest of thousands is one draw.
RATIO = 1.5

report = burin.Report()


def compare(name, folder, *options):
    """Our logits, and those of transformers in f32."""
    weights, = folder.glob("model.*")
    found = burin.floats(burin.run(
        [burin.binary(f"tests/logits-{name}"), "-m", weights, *options],
        input=(folder / "prompts.txt").read_bytes()))
    expected = burin.floats((folder / "logits.f32").read_bytes())
    assert len(found) == len(expected), (name, len(found), len(expected))
    return found, expected


def exact(name, folder, family, threads):
    found, expected = compare(name, folder, "--target", family, "--exact",
                              "--kv-cache-dtype", "f32", "--threads", threads)
    # NaN compares false, so "all within" fails on it.
    within = all(abs(a - b) <= TOLERANCE for a, b in zip(found, expected))
    worst = max(abs(a - b) for a, b in zip(found, expected))
    report.line(within, f"{name}, {family}, --exact, KV f32, {threads} threads: {len(found)} "
                        f"logits, largest error {worst:.2e} (at most {TOLERANCE:.0e})")


def best_two(row):
    first = max(range(len(row)), key=row.__getitem__)
    return first, row[first] - max(x for i, x in enumerate(row) if i != first)


def lower(name, folder, family, n_vocab, *options):
    reference = json.loads((folder / "reference.json").read_text())["error_in_bf16"]
    found, expected = compare(name, folder, "--target", family, *options)
    rms = math.sqrt(sum((a - b) ** 2 for a, b in zip(found, expected)) / len(found))
    what = f"{name}, {family}, {' '.join(options) or 'default'}"
    report.line(rms <= RATIO * reference["rms"],
                f"{what}: error {rms:.4f}, transformers in bf16 {reference['rms']:.4f}: "
                f"{rms / reference['rms']:.2f} times (at most {RATIO})")

    clear = same = 0
    for at in range(0, len(found), n_vocab):
        token, margin = best_two(expected[at:at + n_vocab])
        if margin > 2 * reference["max"]:
            clear += 1
            same += token == best_two(found[at:at + n_vocab])[0]
    report.line(clear > 0 and same == clear,
                f"{what}: the same best token at {same} of {clear} clear positions of "
                f"{len(found) // n_vocab}")


folders = sorted(burin.GOLDEN.glob("llama_tiny-*"))
for folder in folders:
    info = json.loads(burin.run([burin.binary(folder.name), "info", "--json"]))
    for family in dict.fromkeys(f["family"] for f in info["families"] if f["runs_here"]):
        for threads in (1, 2):
            exact(folder.name, folder, family, threads)
        for options in ([], ["--exact"]):
            lower(folder.name, folder, family, info["dims"]["n_vocab"], *options)
report.line(len(folders) >= 7, f"{len(folders)} checkpoints")
report.close()
