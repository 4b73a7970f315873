#!/usr/bin/env python3
"""tests/golden/gemma4_pictures.py -- Logits that transformers gives in f32 with the checkpoints of
gemma4_tiny.py, whole: prompts with an image, with two of different sizes, with frames of a video.

One needs it to make prompts_KIND.txt and logits_KIND.f32 in the folders gemma4_tiny-VARIANT-bf16
anew, behind gemma4_tiny.py, never to build or test:

  ref/bin/python tests/golden/gemma4_pictures.py            all of them
  ref/bin/python tests/golden/gemma4_pictures.py e2b 31b    those named
  ref/bin/python tests/golden/gemma4_pictures.py --errors   of the prompts that are there: how far
                                                            transformers in bf16 is from the logits

That goes into reference.json, by kind.

A prompt is one line: token ids, and 7x6 for an image or frame of 7 soft tokens in each of 6 rows.
Its pixels are numbers, as gemma4_tiny.py has them, and begin anew with each prompt. The first
image is longer than the windows of 26B-A4B and 31B, whose tokens of an image see each other.

Random models make much of little: of some prompts transformers itself is 1e-4 off in f32. Ids are
drawn until it is within CLEAR of what it gives in f64."""
import copy
import json
import sys

import torch
from safetensors.torch import load_file
from transformers import Gemma4Config, Gemma4ForConditionalGeneration
from transformers.models.gemma4.configuration_gemma4 import Gemma4VisionConfig

import gemma4_tiny as tiny
import oracle

# Between numbers of soft tokens, so many random ids.
KINDS = {
    "image": [29, (7, 6), 8],
    "images": [5, (7, 5), 6, (3, 4), 9],
    "video": [7, (5, 3), 4, (5, 3), 4, (5, 3), 4, (5, 3), 5],
}
CLEAR = 3e-5


def whole_model(variant, folder):
    sizes = dict(tiny.SHAPES[variant])
    vision = Gemma4VisionConfig(**tiny.VISION[tiny.VISION_OF[variant]], attn_implementation="eager")
    n = sizes["vocab_size"]  # placeholders lie outside: they are never looked up
    config = Gemma4Config(text_config=tiny.text_config(sizes), vision_config=vision,
                          audio_config=None,
                          image_token_id=n, video_token_id=n + 1, audio_token_id=n + 2)
    config._attn_implementation = "eager"
    model = Gemma4ForConditionalGeneration(config).to(torch.float32).eval()
    weights = {name: weight.to(torch.float32)
               for name, weight in load_file(folder / "model.safetensors").items()}
    missing, unread = model.load_state_dict(weights, strict=False)
    first = sizes["num_hidden_layers"] - sizes.get("num_kv_shared_layers", 0)
    assert set(missing) <= {"lm_head.weight"}, missing
    assert all("self_attn" in name and int(name.split(".layers.")[1].split(".")[0]) >= first
               for name in unread), unread  # keys and values of layers that share another's
    model.tie_weights()
    model.set_experts_implementation("eager")  # the other knows no f64
    embed = model.model.language_model.embed_tokens
    embed.embed_scale = embed.embed_scale.to(torch.bfloat16).to(torch.float32)
    return model


@torch.no_grad()
def logits_of(model, kind, prompt):
    """Masks are those that generate() makes: the whole prompt at once, with its types."""
    placeholder = model.config.video_token_id if kind == "video" else model.config.image_token_id
    ids, types, sizes = [], [], []
    for part in prompt:
        if isinstance(part, tuple):
            sizes.append(part)
            part = [placeholder] * (part[0] * part[1])
            types += [2 if kind == "video" else 1] * len(part)
        else:
            types += [0] * len(part)
        ids += part
    images = list(tiny.images(sizes))
    most = max(pixels.shape[1] for pixels, _ in images)
    pixels = torch.zeros(len(images), most, 768, dtype=model.dtype)
    positions = torch.full((len(images), most, 2), -1)
    for i, (values, places) in enumerate(images):
        pixels[i, :values.shape[1]] = values[0]
        positions[i, :places.shape[1]] = places[0]
    if kind == "video":
        given = dict(pixel_values_videos=pixels, video_position_ids=positions,
                     num_frames_per_video=torch.tensor([len(images)]))
    else:
        given = dict(pixel_values=pixels, image_position_ids=positions)
    return model(input_ids=torch.tensor([ids]), mm_token_type_ids=torch.tensor([types]),
                 use_cache=False, **given).logits[0]


def word(part):
    return f"{part[0]}x{part[1]}" if isinstance(part, tuple) else " ".join(map(str, part))


def make(variant):
    folder = tiny.GOLDEN / f"gemma4_tiny-{variant}-bf16"
    model = whole_model(variant, folder)
    precise = copy.deepcopy(model).to(torch.float64)
    n_vocab = tiny.SHAPES[variant]["vocab_size"]
    for kind, parts in KINDS.items():
        torch.manual_seed(4000)
        error, draws = 1, 0
        while error > CLEAR:
            prompt = [part if isinstance(part, tuple) else
                      torch.randint(0, n_vocab, (part,)).tolist() for part in parts]
            logits = logits_of(model, kind, prompt)
            error = float((logits - logits_of(precise, kind, prompt)).abs().max())
            draws += 1
        (folder / f"prompts_{kind}.txt").write_text(" ".join(map(word, prompt)) + "\n")
        (folder / f"logits_{kind}.f32").write_bytes(logits.numpy().astype("<f4").tobytes())
        print(f"{folder.name}, {kind}: draw {draws}, {len(logits)} positions, logits of scale "
              f"{logits.std():.3f}, off by {error:.1e}", file=sys.stderr)


def parts_of(line):
    """What word() wrote."""
    ids = []
    for text in line.split():
        if "x" in text:
            yield from ([ids] if ids else [])
            yield tuple(map(int, text.split("x")))
            ids = []
        else:
            ids.append(int(text))
    yield from ([ids] if ids else [])


def note_errors(variant):
    folder = tiny.GOLDEN / f"gemma4_tiny-{variant}-bf16"
    reference = json.loads((folder / "reference.json").read_text())
    model = whole_model(variant, folder).to(torch.bfloat16)
    n_vocab = tiny.SHAPES[variant]["vocab_size"]
    for kind in KINDS:
        prompt = list(parts_of((folder / f"prompts_{kind}.txt").read_text()))
        logits = torch.frombuffer(bytearray((folder / f"logits_{kind}.f32").read_bytes()),
                                  dtype=torch.float32).reshape(-1, n_vocab)
        reference[f"error_in_bf16_{kind}"] = tiny.difference(logits_of(model, kind, prompt), logits)
    oracle.write_json(folder / "reference.json", reference)


make_one = note_errors if "--errors" in sys.argv else make
for variant in [name for name in sys.argv[1:] if name != "--errors"] or tiny.SHAPES:
    make_one(variant)
