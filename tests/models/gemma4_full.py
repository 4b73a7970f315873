#!/usr/bin/env python3
"""tests/models/gemma4_full.py FOLDER [memory] [video] [speed] -- Gemma 4 E2B in full size on a CPU;
minutes, so it isn't part of tests/run. FOLDER is a checkpoint, random ones will do:

  gen --model gemma4.lua --target native && build --tests
  synth gemma4-e2b-bf16-native --out FOLDER
  python3 tests/models/gemma4_full.py FOLDER

memory  a question about a picture, 32 tokens: each owner as planned, anonymous memory within the
        plan and 256 MiB
video   32 frames of video: --encoder-arena 128MiB makes 5 runs or more, 2GiB one, both the same
        bits; 8MiB is refused before anything is loaded, with the number that would do
speed   what a token must read, times the rate, is 75 % of the read bandwidth or more"""
import hashlib
import json
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import burin
import memory

MARGIN = 256 << 20
SHARE = 0.75
NAME = "gemma4-e2b-bf16-native"
FRAMES, FRAME = 32, "8x8"  # soft tokens of a frame: columns, rows

if len(sys.argv) < 2 or not Path(sys.argv[1]).is_dir():
    burin.skip("no checkpoint of full size")
weights, parts = sys.argv[1], sys.argv[2:] or ["memory", "video", "speed"]
binary = burin.binary(NAME)
report = burin.Report()


def a_picture():
    return burin.GOLDEN / "media" / "pictures" / "exif-1.jpg"


def question():
    plan = [binary, "plan", "-m", weights, "--images", 1, "-c", 4096, "--json"]
    run = [binary, "run", "-m", weights, "--image", a_picture(), "-c", 4096, "--json", "-n", 32,
           "--ignore-eos", "--temp", 0, "What is in this picture?"]
    said = memory.compare(report, "an image question", plan, run, MARGIN)
    print(f"{said['prompt_tokens']} tokens in {said['prefill_ms'] / 1e3:.1f} s, "
          f"{said['tokens']} more in {said['decode_ms'] / 1e3:.1f} s")


def encoder_run(arena):
    """Soft tokens of the largest run."""
    plan = json.loads(burin.run([binary, "plan", "-m", weights, "--video-frames", FRAMES,
                                 "--encoder-arena", arena, "--json"]))
    return next(p["n"] for p in plan["programs"] if p["program"] == "encode_image")


def video():
    ids = " ".join(f"{100 + i} {FRAME} {200 + i}" for i in range(FRAMES)) + " 7"
    n_soft = int(FRAME[0]) * int(FRAME[2])
    digests = []
    for arena, least, most in (("128MiB", 5, FRAMES), ("2GiB", 1, 1)):
        room = encoder_run(arena)
        planned = -(-FRAMES // min(room // n_soft, room // 70))
        begin = time.monotonic()
        done = subprocess.run(
            [burin.binary(f"tests/logits-{NAME}"), "-m", weights, "--frames", str(FRAMES),
             "--encoder-arena", str(burin_bytes(arena)), "--from", str(FRAMES * (n_soft + 2))],
            input=ids.encode(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True)
        runs = int(done.stderr.split()[-1])
        digests.append(hashlib.sha256(done.stdout).hexdigest())
        report.line(runs == planned and least <= runs <= most,
                    f"{FRAMES} frames, --encoder-arena {arena}: {runs} runs of up to {room} soft "
                    f"tokens, {planned} planned, {time.monotonic() - begin:.0f} s")
    report.line(digests[0] == digests[1], f"the same bits: {digests[0][:16]}")

    begin = time.monotonic()
    clip = burin.GOLDEN / "media" / "clips" / "ten.mp4"
    done = subprocess.run([binary, "run", "-m", weights, "--video", clip, "--encoder-arena", "8MiB",
                           "What happens?"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    took, told = time.monotonic() - begin, done.stderr.decode().strip()
    report.line(done.returncode != 0 and "takes 25822720 bytes" in told and took < 10,
                f"--encoder-arena 8MiB, in {took:.1f} s: {told}")


def burin_bytes(text):
    return int(text[:-3]) << {"MiB": 20, "GiB": 30}[text[-3:]]


def speed():
    said = json.loads(burin.run([binary, "bench", "-m", weights, "-p", 0, "-n", 32, "-r", 5,
                                 "--json"]))
    row = said["rows"][0]
    report.line(row["bandwidth_share"] >= SHARE,
                f"{row['tokens_per_second']:.2f} tokens/s x {row['bytes_per_token'] / 1e9:.2f} GB: "
                f"{100 * row['bandwidth_share']:.0f} % of {said['bandwidth'][0]['gbs']:.1f} GB/s")


for part, check in (("memory", question), ("video", video), ("speed", speed)):
    if part in parts:
        check()
report.close()
