#!/usr/bin/env python3
"""tests/models/test_without_cuda.py -- One binary for machines with and without CUDA: what
`--device` says where the driver's library is not there, is the toolkit's stub, is too old or
has no GPU. `auto` answers on the CPU all the same, and says why when it is asked; where there
is a GPU, or its driver is named, without being asked."""
import ctypes.util
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import burin

weights = burin.smollm2_weights()
binary = burin.binary(burin.SMOLLM2)
report = burin.Report()
clean = {k: v for k, v in os.environ.items() if not k.startswith(("BURIN_", "CUDA_"))}
fake = burin.BIN / "tests" / "fake_driver.so"  # tests/runtime/device/cuda
if not fake.exists():
    burin.skip(f"{fake} is not built")


def call(*arguments, **env):
    return subprocess.run([binary, "run", "Why is the sky blue?", "-n", "3", "-m", weights,
                           *arguments], capture_output=True, text=True, timeout=120,
                          stdin=subprocess.DEVNULL, env={**clean, **env})


def expect(name, done, code, words):
    wrong = [f"exit code {done.returncode}, not {code}"] if done.returncode != code else []
    wrong += [f"stderr lacks {text!r}" for text in words if text not in done.stderr]
    report.line(not wrong, name + "".join(f"\n       {w}" for w in wrong) +
                (f"\n       {done.stderr[-600:]!r}" if wrong else ""))


# What a machine is like, and what its user reads.
machines = {
    "another library": ({"BURIN_CUDA_DRIVER": "/nowhere/libcuda.so.1"},
                        ["BURIN_CUDA_DRIVER names /nowhere/libcuda.so.1, which does not open"]),
    "the toolkit's stub": ({"BURIN_CUDA_DRIVER": str(fake), "FAKE_INIT": "34"},
                           ["the CUDA toolkit's stub", "Install NVIDIA's driver"]),
    "a driver too old": ({"BURIN_CUDA_DRIVER": str(fake), "FAKE_VERSION": "11080"},
                         ["is of CUDA 11.8, 12.4 or later is needed", "update"]),
    "a driver without a GPU": ({"BURIN_CUDA_DRIVER": str(fake), "FAKE_INIT": "100"},
                               ["no GPU that we may use"]),
}
answer = call("--device", "cpu")
for name, (env, words) in machines.items():
    expect(f"{name}: --device cuda is refused", call("--device", "cuda", **env), 4, words)
    auto = call("-v", **env)
    expect(f"{name}: auto says why it is on the CPU", auto, 0, ["on the CPU: ", words[0]])
    report.line(auto.stdout == answer.stdout, f"{name}: auto answers as the CPU does")
    unasked = call(**env)
    expect(f"{name}: auto says so unasked, of a driver that is named", unasked, 0,
           ["on the CPU: ", words[0]])
if not ctypes.util.find_library("cuda"):
    expect("no library: --device cuda is refused", call("--device", "cuda"), 4,
           ["NVIDIA's driver is not there", "install it"])
    report.line("on the CPU" not in call().stderr, "no library: auto does not speak of it unasked")
    expect("no library: but when it is asked", call("-v"), 0, ["on the CPU: NVIDIA's driver"])

# A GPU that is there and not taken (tests/gpu): without NVRTC, too small, of no use for the request.
gpu = burin.BIN / "tests" / "libburin-gpu.so.1"
card = {"BURIN_CUDA_DRIVER": str(gpu), "BURIN_NVML": str(gpu), "BURIN_NVRTC": str(gpu),
        "BURIN_GPU_CARD": "4GiB,sm_80"}
passed = {
    "no NVRTC": ({"BURIN_NVRTC": "/nowhere/libnvrtc.so"}, 4,
                 "kernels that are not embedded need NVRTC"),
    "a GPU too small": ({"BURIN_GPU_CARD": "1100MiB,sm_80"}, 3, "short by"),
}
for name, (env, code, words) in passed.items() if gpu.exists() else ():
    env = {**card, **env}
    expect(f"{name}: --device cuda is refused", call("--device", "cuda", **env), code, [words])
    auto = call(**env)
    expect(f"{name}: auto says unasked why it is on the CPU", auto, 0,
           ["on the CPU: cuda:0: ", words])
    report.line(auto.stdout == answer.stdout, f"{name}: auto answers as the CPU does")
if gpu.exists():
    expect("what the CPU refuses says why it is not the GPU", call("--target", "sm90", **card), 2,
           ["--target sm90 is of a GPU", "for GPUs: sm80, ", "(No GPU is used: cuda:0: --target sm90 needs"])

report.close()
