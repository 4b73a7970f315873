#!/usr/bin/env python3
"""tests/models/test_tiny_logits.py -- Tiny random checkpoints against transformers, in f32:
3 prompts of 48 positions for each shape, every logit within 1e-4."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import burin

# Both sides sum some hundred products of size one in f32, in another order.
TOLERANCE = 1e-4

report = burin.Report()
shapes = sorted(burin.GOLDEN.glob("llama_tiny-*"))
for folder in shapes:
    name = folder.name + "-f32"
    expected = burin.floats((folder / "logits.f32").read_bytes())
    for threads in (1, 2):
        found = burin.floats(burin.run(
            [burin.binary(f"tests/logits-{name}"), "-m", folder / "model.safetensors",
             "--exact", "--kv-cache-dtype", "f32", "--threads", threads],
            input=(folder / "prompts.txt").read_bytes()))
        same_count = len(found) == len(expected)
        # NaN compares false, so "all within" fails on it.
        within = same_count and all(abs(a - b) <= TOLERANCE for a, b in zip(found, expected))
        worst = max((abs(a - b) for a, b in zip(found, expected)), default=float("nan"))
        report.line(within, f"{name}, {threads} threads: {len(found)} logits, largest error "
                            f"{worst:.2e} (at most {TOLERANCE:.0e})")
report.line(len(shapes) >= 2, f"{len(shapes)} shapes")
report.close()
