#!/usr/bin/env python3
"""tests/models/test_synth.py -- tools/synth: a checkpoint of a described model that loads.

The same seed gives the same bytes and, whatever the shards are, the same tensors; their scale is
sane, in every format; what a checkpoint holds and nobody reads is there, and so are numbers
without dims. A folder's checkpoint is kept, what can't be written is told."""
import json
import math
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import burin

SYNTH = burin.ROOT / "tools" / "synth"
report = burin.Report()


def synth(*args):
    """Exit code and what it said."""
    done = subprocess.run([str(SYNTH), *map(str, args)], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


def made(name, folder, *args):
    code, said = synth(name, "--out", folder, *args)
    assert code == 0, said
    return folder


def tensors(folder):
    """{ name: (dtype, shape, bytes) } by the index, whose shards hold nothing else."""
    index = json.loads((folder / "model.safetensors.index.json").read_text())["weight_map"]
    found = {}
    for shard in folder.glob("model-*.safetensors"):
        raw = shard.read_bytes()
        length, = struct.unpack("<Q", raw[:8])
        assert length % 8 == 0
        for name, row in json.loads(raw[8:8 + length]).items():
            if name == "__metadata__":
                continue
            assert index.pop(name) == shard.name, name
            begin, end = (8 + length + at for at in row["data_offsets"])
            found[name] = row["dtype"], tuple(row["shape"]), raw[begin:end]
    assert not index, index
    return found


def values(tensor):
    dtype, shape, raw = tensor
    if dtype == "F32":
        found = burin.floats(raw)
    elif dtype == "F16":
        found = struct.unpack(f"<{len(raw) // 2}e", raw)
    else:
        found = burin.floats(b"".join(b"\0\0" + raw[i:i + 2] for i in range(0, len(raw), 2)))
    assert len(found) == math.prod(shape)
    return found


def moments(numbers):
    mean = sum(numbers) / len(numbers)
    return mean, math.sqrt(sum((x - mean) ** 2 for x in numbers) / len(numbers))


def same_bytes_and_tensors(name, scratch):
    first = made(name, scratch / f"{name}-1", "--seed", 7)
    second = made(name, scratch / f"{name}-2", "--seed", 7)
    files = sorted(path.name for path in first.iterdir())
    same = all((first / file).read_bytes() == (second / file).read_bytes() for file in files)
    report.line(same and len(files) == 3, f"{name}: the same seed gives the same bytes, {files}")

    small = made(name, scratch / f"{name}-3", "--seed", 7, "--shard", "16KiB")
    n_files = len(list(small.glob("model-*")))
    report.line(n_files > 3 and tensors(small) == tensors(first),
                f"{name}: the same tensors in {n_files} files")
    other = tensors(made(name, scratch / f"{name}-4", "--seed", 8))
    report.line(all(other[key] != tensor for key, tensor in tensors(first).items()),
                f"{name}: another seed gives other values")
    return first, small


def sane_scale(name, folder):
    worst = 0
    for key, tensor in tensors(folder).items():
        mean, deviation = moments(values(tensor))
        shape, n = tensor[1], math.prod(tensor[1])
        wanted = (0, shape[1] ** -0.5) if len(shape) == 2 else (1, 0.05)
        worst = max(worst, abs(mean - wanted[0]) / wanted[1] * math.sqrt(n) / 5,
                    abs(deviation / wanted[1] - 1) * math.sqrt(n) / 5)
    report.line(worst < 1, f"{name}: means and deviations are as said, within {worst:.2f} of 5 sigma")


def runs(name, folder, sharded):
    command = [burin.binary(f"tests/logits-{name}"), "-m"]
    ids = b"1 2 3 5 8 13 21 34 55\n4 7 9\n"
    logits = burin.run([*command, folder], input=ids)
    mean, deviation = moments(burin.floats(logits))
    report.line(abs(mean) < 0.5 and 0.3 < deviation < 3,
                f"{name}: it loads and runs, logits {mean:.2f} +- {deviation:.2f}")
    report.line(burin.run([*command, sharded], input=ids) == logits,
                f"{name}: the same logits from shards")


def gemma(scratch):
    """What only other models have: stacks, convolutions, numbers without dims, tensors nobody reads."""
    config = burin.GOLDEN / "gemma4" / "tiny-e2b.config.json"
    subprocess.run([str(burin.ROOT / "gen" / "gen"), "plan", "gemma4.lua", "--config", str(config),
                    "--name", "synth-test", "--ctx-size", "256"],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    folder = made("gemma4-synth-test-bf16", scratch / "gemma")
    found = tensors(folder)
    text = "model.language_model.layers."
    shapes = {
        text + "8.self_attn.k_proj.weight": (24, 48),  # the layer reads another one's keys
        text + "0.layer_scalar": (1,),
        "model.vision_tower.patch_embedder.position_embedding_table": (2, 64, 40),
        "model.vision_tower.encoder.layers.0.self_attn.q_proj.input_min": (),
        "model.audio_tower.layers.0.lconv1d.depthwise_conv1d.weight": (48, 1, 5),
        "model.audio_tower.subsample_conv_projection.layer1.conv.weight": (12, 128, 3, 3),
    }
    wrong = [name for name, shape in shapes.items() if found[name][:2] != ("BF16", shape)]
    report.line(not wrong, f"gemma4: dims as transformers has them {wrong}")
    low, = values(found["model.vision_tower.encoder.layers.0.self_attn.q_proj.input_min"])
    high, = values(found["model.vision_tower.encoder.layers.0.self_attn.q_proj.input_max"])
    scalar, = values(found[text + "0.layer_scalar"])
    report.line(low < -40 and high > 40 and 0.8 < scalar < 1.2,
                f"gemma4: clips at {low} and {high}, layer_scalar {scalar}")
    _, deviation = moments(values(
        found["model.audio_tower.subsample_conv_projection.layer1.conv.weight"]))
    report.line(abs(deviation * 1152 ** 0.5 - 1) < 0.1, "gemma4: a convolution's inputs are channels and taps")
    report.line((folder / "config.json").read_bytes() == config.read_bytes(),
                "gemma4: config.json is the one that gave the sizes")


def refusals(name, folder):
    for args, code, part in [
        ((name, "--out", folder), 2, "is there already: --force replaces it"),
        ((name, "--out", folder, "--force"), 0, "wrote 21 tensors"),
        ((name, "--dry-run"), 0, "would be 21 tensors"),
        ((name,), 2, "--out DIR"),
        ((name, "--out", folder, "--seed", "x"), 2, "'x' isn't a number"),
        ((name, "--out", folder, "--shard", "1x"), 2, "is not a unit of size"),
        ((name, "--out", folder, "--tokenizer", "nothing"), 4, "nothing can't be read"),
        (("no-such-model", "--out", folder), 4, "neither build/gen nor build/gen-plan has"),
        (("llama_tiny-groups-q4_1", "--dry-run"), 2, "--quant bf16"),
        ((name, "--out", "/proc/x"), 1, "can't make the folder"),
        (("--nothing",), 2, "unknown option --nothing"),
        (("--help",), 0, "--shard SIZE"),
    ]:
        found, said = synth(*args)
        report.line(found == code and part in said,
                    f"{' '.join(map(str, args))}: {code}, {said.splitlines()[-1] if said else ''}")


with tempfile.TemporaryDirectory() as scratch:
    for name in ["llama_tiny-small-f32", "llama_tiny-groups-bf16", "llama_tiny-groups-f16"]:
        if not (burin.ROOT / "build" / "gen" / name).exists():
            burin.skip(f"{name} is not generated")
        whole, shards = same_bytes_and_tensors(name, Path(scratch))
        sane_scale(name, whole)
        runs(name, whole, shards)
    gemma(Path(scratch))
    refusals("llama_tiny-small-f32", Path(scratch) / "llama_tiny-small-f32-1")
report.close()
