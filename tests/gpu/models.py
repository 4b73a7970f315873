#!/usr/bin/env python3
"""tests/gpu/models.py NAME text|pictures -- A tiny model on a virtual GPU that executes, against
transformers on the same weights: its error against f32 is at most 1.5 times that of transformers in
bf16, under --fast-gemm, too. Bits are the same in one chunk and in many, beside other sequences, and
token by token, launched one by one or as graphs.

What is computed once is judged for all that it shows: a run costs seconds, and of pictures most of
that is the start, which runs each program at its largest."""
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
name, what = sys.argv[1:]
folder = burin.GOLDEN / name
n_vocab = json.loads(burin.run([burin.binary(name), "info", "--json"]))["dims"]["n_vocab"]
LOGITS = 4 * n_vocab # bytes of a position's
has_cublaslt = "BURIN_CUBLASLT" in os.environ
is_virtual = has_cublaslt and os.environ["BURIN_CUBLASLT"] == os.environ.get("BURIN_CUDA_DRIVER")
small = ["--device", "cuda", "--batch-size", 160, "--graphs", "step=1"]


def given(input, *options, **how):
    return golden_logits.found(name, folder, *small, *options, input=input, **how)


def given_fast(input, rows):
    """Logits under --fast-gemm. The virtual GPU's library tells how many products were cuBLASLt's:
    none of fewer than 128 rows."""
    with tempfile.TemporaryFile() as told:
        logits = given(input, "--fast-gemm", "--batch-size", rows, stderr=told,
                       env={**os.environ, "BURIN_GPU_PRODUCTS": "1"})
        told.seek(0)
        n = re.search(rb"(\d+) products", told.read())
    if is_virtual:
        report.line((int(n[1]) > 0) == (rows >= 128),
                    f"{name}, --fast-gemm, {rows} rows: {int(n[1])} products of cuBLASLt's")
    return logits


def judge(how, logits, kind=""):
    clear, agree, text = golden_logits.judge(
        report, f"{name}, {kind or 'text'}{how}", logits, folder, n_vocab, kind)
    report.line(agree == clear, text)


def same(how, found, expected):
    n = len(expected) // LOGITS
    differ = [i for i in range(n)
              if found[i * LOGITS:(i + 1) * LOGITS] != expected[i * LOGITS:(i + 1) * LOGITS]]
    report.line(n > 0 and not differ and len(found) == len(expected),
                f"{name}, {what}: the same bits {how}, {n} positions"
                + (f"; {len(differ)} differ, the first is {differ[0]}" if differ else ""))


def text():
    prompts = golden_logits.prompts(folder)
    whole = given(prompts)
    judge("", whole)
    same("beside others, as graphs",
         given(prompts, "--parallel", 4, "--batch-size", 29, "--graphs", "step=2,4"), whole)
    if has_cublaslt:
        same("in chunks, --fast-gemm", given_fast(prompts, 13), whole)
    else:
        same("in chunks", given(prompts, "--batch-size", 13), whole)

    lines = prompts.splitlines(keepends=True)
    few = min(range(len(lines)), key=lambda i: (len(lines[i].split()) < 7, len(lines[i].split())))
    begin = sum(len(line.split()) for line in lines[:few]) * LOGITS
    alone = whole[begin:begin + len(lines[few].split()) * LOGITS]
    same("token by token, as graphs", given(lines[few], "--batch-size", 1), alone)
    same("token by token, launched", given(lines[few], "--batch-size", 1, "--eager"), alone)

    if has_cublaslt and any(len(line.split()) >= 128 for line in lines): # else none is cuBLASLt's
        judge(", --fast-gemm", given_fast(prompts, 160))


def pictures():
    # Start-up runs each program at its largest and each graph once: on fibers that takes minutes
    # where they are as large as a GPU's.
    few = ["--frames", 4, "--graphs", "encode_image=70"]
    prompts = {kind: golden_logits.prompts(folder, kind) for kind in ("image", "images", "video")}
    n_bytes = {kind: (folder / f"logits_{kind}.f32").stat().st_size for kind in prompts}
    whole = given(b"".join(prompts.values()), *few)
    at = 0
    for kind in prompts:
        judge("", whole[at:at + n_bytes[kind]], kind)
        at += n_bytes[kind]
    assert at == len(whole), (at, len(whole))

    # Encoders' runs as large as the graph, and no larger. A picture whose tokens see each other is
    # never cut: a chunk has room for 70.
    plan = json.loads(burin.run([burin.binary(name), "plan", "--json", "--card", "4GiB,sm_80",
                                 "--graphs", "encode_image=70"]))
    arena, = [run["arena_bytes"] for run in plan["programs"] if run["program"] == "encode_image"]
    cut = given(prompts["image"] + prompts["images"], *few, "--batch-size", 70, "--eager",
                "--encoder-arena", arena)
    same("in chunks, launched, not as graphs", cut, whole[:n_bytes["image"] + n_bytes["images"]])


{"text": text, "pictures": pictures}[what]()
report.close()
