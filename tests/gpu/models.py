#!/usr/bin/env python3
"""tests/gpu/models.py NAME KIND -- A tiny model on a virtual GPU that executes, against transformers
on the same weights; KIND is text, image, images or video. Its error against f32 is at most 1.5 times
that of transformers in bf16. Bits are the same in one chunk and in many, beside other sequences, and
token by token, launched one by one or as graphs. Under --fast-gemm the error has the same bound."""
import json
import os
import re
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import burin
import golden_logits

report = burin.Report()
name, kind = sys.argv[1:]
folder = burin.GOLDEN / name
weights, = folder.glob("model.*")
logits = burin.binary(f"tests/logits-{name}")
info = json.loads(burin.run([burin.binary(name), "info", "--json"]))
n_vocab = info["dims"]["n_vocab"]
prompts = (folder / ("prompts.txt" if kind == "text" else f"prompts_{kind}.txt")).read_bytes()
# Start-up runs each program at its largest and each graph once: on a CPU that takes minutes where they
# are as large as a GPU's.
small = ["--device", "cuda", "--batch-size", 160, "--graphs", "step=1"]
if kind != "text":
    small += ["--frames", 4, "--graphs", "encode_image=70"]


def given(input, *options):
    return burin.run([logits, "-m", weights, *small, *options], input=input)


def products(*options):
    with tempfile.TemporaryFile() as told:
        burin.run([logits, "-m", weights, "--device", "cuda", *options], input=prompts, stderr=told,
                  env={**os.environ, "BURIN_GPU_PRODUCTS": "1"})
        told.seek(0)
        return int(re.search(rb"(\d+) products", told.read())[1])


def same(what, found, expected):
    n = len(expected) // 4 // n_vocab
    differ = [i for i in range(n)
              if found[i * 4 * n_vocab:(i + 1) * 4 * n_vocab] != expected[i * 4 * n_vocab:(i + 1) * 4 * n_vocab]]
    report.line(not differ and len(found) == len(expected),
                f"{name}, {kind}: the same bits {what}, {n} positions"
                + (f"; {len(differ)} differ, the first is {differ[0]}" if differ else ""))


clear, agree, what = golden_logits.lower(
    report, name, folder, n_vocab, *small, kind="" if kind == "text" else kind)
report.line(agree == clear, what)

whole = given(prompts) if kind != "video" else None
if kind in ("text", "image"): # a picture whose tokens see each other is never cut
    same("in chunks", given(prompts, "--batch-size", 13 if kind == "text" else 70), whole)
if kind == "images": # runs as large as the graph, and no larger
    plan = json.loads(burin.run([burin.binary(name), "plan", "--json", "--card", "4GiB,sm_80",
                                 "--graphs", "encode_image=70"]))
    arena, = [run["arena_bytes"] for run in plan["programs"] if run["program"] == "encode_image"]
    same("launched, not as graphs", given(prompts, "--eager", "--encoder-arena", arena), whole)
if kind == "text":
    short = b"".join(line for line in prompts.splitlines(keepends=True) if len(line.split()) < 30)
    alone = given(short)
    same("token by token, as graphs", given(short, "--batch-size", 1), alone)
    same("token by token, launched", given(short, "--batch-size", 1, "--eager"), alone)
    if any(len(line.split()) >= 128 for line in prompts.splitlines()): # else no product is cuBLASLt's
        clear, agree, what = golden_logits.lower(
            report, name, folder, n_vocab, "--device", "cuda", "--fast-gemm")
        report.line(agree == clear, what)
        for size, many in [(150, True), (13, False)]:
            n = products("--fast-gemm", "--batch-size", size)
            report.line((n > 0) == many, f"{name}, --fast-gemm, {size} rows: {n} products of cuBLASLt's")
    same("beside others, as graphs",
         given(prompts, "--parallel", 4, "--batch-size", 29, "--graphs", "step=2,4"), whole)
report.close()
