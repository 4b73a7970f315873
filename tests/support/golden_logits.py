"""tests/support/golden_logits.py -- A tiny checkpoint's logits against those of transformers on
the same weights, in f32 and in lower precision: what tests/models/test_tiny_logits.py, gemma4.py
and tests/gpu/models.py share. A folder of tests/golden holds model.*, prompts.txt, logits.f32 and
reference.json; prompts_KIND.txt and logits_KIND.f32 where there are prompts of several kinds."""
import json
import math

import burin

# Both sides sum some hundred products of size one in f32, in another order.
TOLERANCE = 1e-4

# Transformers in bf16 keeps 8 bits of everything: weights, sums, the stream between layers. We
# keep f32 but for the KV cache in bf16 (a quarter of its error), and for what goes into a product
# with bf16 weights: bf16 (half of it), or with quantized ones: int8, where 32 share a scale, so
# that most have 5 or 6 bits (1.3 to 1.5 times; cut off instead of rounded it would be 2.4).
# Errors are root mean squares over all logits: the largest of thousands is one draw.
RATIO = 1.5


def prompts(folder, kind=""):
    return (folder / f"prompts{kind and '_' + kind}.txt").read_bytes()


def found(name, folder, *options, input, **how):
    """Our logits of the prompts in `input`, f32 as bytes."""
    weights, = folder.glob("model.*")
    return burin.run(
        [burin.binary(f"tests/logits-{name}"), "-m", weights, *options], input=input, **how)


def both(logits, folder, kind=""):
    """Ours, given as bytes, and those of transformers in f32."""
    ours = burin.floats(logits)
    theirs = burin.floats((folder / f"logits{kind and '_' + kind}.f32").read_bytes())
    assert len(ours) == len(theirs), (folder, kind, len(ours), len(theirs))
    return ours, theirs


def exact(report, name, folder, family, threads, *options, kind=""):
    logits = found(name, folder, "--target", family, "--exact", "--kv-cache-dtype", "f32",
                   "--threads", threads, *options, input=prompts(folder, kind))
    ours, theirs = both(logits, folder, kind)
    # NaN compares false, so "all within" fails on it.
    within = all(abs(a - b) <= TOLERANCE for a, b in zip(ours, theirs))
    worst = max(abs(a - b) for a, b in zip(ours, theirs))
    what = " ".join([f"{threads} threads", *map(str, options)])
    report.line(within, f"{name}, {family}, --exact, KV f32, {what}: {len(ours)} "
                        f"logits, largest error {worst:.2e} (at most {TOLERANCE:.0e})")


def best_two(row):
    first = max(range(len(row)), key=row.__getitem__)
    return first, row[first] - max(x for i, x in enumerate(row) if i != first)


def judge(report, what, logits, folder, n_vocab, kind=""):
    """Those of lower precision; returns how many positions have a clear best token, how many of
    these agree, and that as a text."""
    ours, theirs = both(logits, folder, kind)
    key = "error_in_bf16" + (kind and "_" + kind)
    reference = json.loads((folder / "reference.json").read_text())[key]
    rms = math.sqrt(sum((a - b) ** 2 for a, b in zip(ours, theirs)) / len(ours))
    report.line(rms <= RATIO * reference["rms"],
                f"{what}: error {rms:.4f}, transformers in bf16 {reference['rms']:.4f}: "
                f"{rms / reference['rms']:.2f} times (at most {RATIO})")

    clear = same = 0
    for at in range(0, len(ours), n_vocab):
        token, margin = best_two(theirs[at:at + n_vocab])
        if margin > 2 * reference["max"]:
            clear += 1
            same += token == best_two(ours[at:at + n_vocab])[0]
    return clear, same, f"{what}: the same best token at {same} of {clear} clear positions of " \
                        f"{len(ours) // n_vocab}"


def lower(report, name, folder, n_vocab, *options):
    logits = found(name, folder, *options, input=prompts(folder))
    return judge(report, f"{name}, {' '.join(map(str, options))}", logits, folder, n_vocab)


def families(info):
    """Those that run here, each once."""
    return list(dict.fromkeys(f["family"] for f in info["families"] if f["runs_here"]))
