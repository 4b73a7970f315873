#!/usr/bin/env python3
"""tests/models/test_encoder.py -- Vision encoders of tiny random checkpoints against transformers
in f32 on the same weights: images of different sizes, each family that runs here.

Exact, every number of every soft token is within 1e-4. In lower precision our error is at most 1.5
times that of transformers in bf16. An image's soft tokens have the same bits alone and beside
another, on any number of threads."""
import json
import math
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import burin

# Both sides sum some hundred products of size one in f32, in another order.
TOLERANCE = 1e-4
# Of what goes into products: tests/models/test_tiny_logits.py.
RATIO = 1.5

report = burin.Report()


def encode(name, folder, family, how, threads, which):
    return burin.run([burin.binary(f"tests/encode-{name}"), folder / "model.safetensors", family,
                      how, threads, which], input=(folder / "images.txt").read_bytes())


def same_bits(what, name, folder, family, how, expected):
    for threads, which in ((1, "together"), (2, "alone"), (3, "together")):
        found = encode(name, folder, family, how, threads, which)
        report.line(found == expected, f"{what}, {which}, {threads} threads: the same bits")


def exact(name, folder, family, expected):
    raw = encode(name, folder, family, "exact", 1, "alone")
    found = burin.floats(raw)
    assert len(found) == len(expected), (name, len(found), len(expected))
    within = all(abs(a - b) <= TOLERANCE for a, b in zip(found, expected))
    worst = max(abs(a - b) for a, b in zip(found, expected))
    what = f"{name}, {family}, exact"
    report.line(within, f"{what}: {len(found)} numbers, largest error {worst:.2e} "
                        f"(at most {TOLERANCE:.0e})")
    same_bits(what, name, folder, family, "exact", raw)


def lower(name, folder, family, expected):
    reference = json.loads((folder / "reference.json").read_text())["encoder_error_in_bf16"]
    raw = encode(name, folder, family, "default", 1, "alone")
    found = burin.floats(raw)
    rms = math.sqrt(sum((a - b) ** 2 for a, b in zip(found, expected)) / len(found))
    what = f"{name}, {family}, default"
    report.line(rms <= RATIO * reference["rms"],
                f"{what}: error {rms:.4f}, transformers in bf16 {reference['rms']:.4f}: "
                f"{rms / reference['rms']:.2f} times (at most {RATIO})")
    same_bits(what, name, folder, family, "default", raw)


folders = sorted(f.parent for f in burin.GOLDEN.glob("*/encoded.f32"))
for folder in folders:
    expected = burin.floats((folder / "encoded.f32").read_bytes())
    info = json.loads(burin.run([burin.binary(folder.name), "info", "--json"]))
    for family in dict.fromkeys(f["family"] for f in info["families"] if f["runs_here"]):
        exact(folder.name, folder, family, expected)
        lower(folder.name, folder, family, expected)
report.line(len(folders) >= 4, f"{len(folders)} checkpoints")
report.close()
