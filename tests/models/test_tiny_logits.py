#!/usr/bin/env python3
"""tests/models/test_tiny_logits.py -- Tiny random checkpoints against transformers in f32 on
the same weights: two shapes, each recipe, each family that runs here.

With --exact --kv-cache-dtype f32 every logit is within 1e-4. In lower precision our error is at
most 1.5 times that of transformers in bf16, and the best token is the same wherever f32 sees
the second far enough behind."""
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import burin
import golden_logits

report = burin.Report()
folders = sorted(burin.GOLDEN.glob("llama_tiny-*"))
for folder in folders:
    info = json.loads(burin.run([burin.binary(folder.name), "info", "--json"]))
    for family in golden_logits.families(info):
        for threads in (1, 2):
            golden_logits.exact(report, folder.name, folder, family, threads)
        for options in ([], ["--exact"]):
            clear, same, text = golden_logits.lower(
                report, folder.name, folder, info["dims"]["n_vocab"], "--target", family, *options)
            report.line(clear > 0 and same == clear, text)
report.line(len(folders) >= 7, f"{len(folders)} checkpoints")
report.close()
