#!/usr/bin/env bash
# tests/gpu/aot.sh -- What gen --aot puts into a binary serves it where there is no compiler: one runs
# on the virtual GPU without NVRTC, and the same without embedded kernels says what to do.
#
# The embedded kernels are what the virtual GPU's own compiler makes. BURIN_RUNTIME and BURIN_APP are the
# libraries that binaries link.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."

gpu=${BURIN_BIN:-build/bin}/tests/libburin-gpu.so.1
runtime=${BURIN_RUNTIME:-build/cmake/release/libburin_runtime.a}
app=${BURIN_APP:-build/cmake/release/libburin_app.a}
for file in "$gpu" "$runtime" "$app"; do
    [ -e "$file" ] || { echo "skipped: $file is not built"; exit 77; }
done
gpu=$(readlink -f "$gpu")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export BURIN_KERNEL_CACHE= XDG_CACHE_HOME=$work BURIN_CUDA_DRIVER=$gpu BURIN_NVML=$gpu

gen/gen --model models/llama_tiny.lua --variant small --quant f32 --target cuda --aot sm_80 --out "$work"
grep -q '^set(BURIN_MODEL_AOT sm_80)$' "$work/sources.cmake"

compile() { # output, sources: with the model
    gcc -std=c11 -D_GNU_SOURCE -O1 -I. -I"$work" -o "$@" "$work"/llama*.c "$work"/sm80*.c "$app" "$runtime" \
        $(pkg-config --libs lua5.4 libpcre2-8 libutf8proc) -lm -ldl -lpthread
}
compile "$work/kernels" tools/kernels.c
BURIN_NVRTC=$gpu "$work/kernels" --embed sm_80 >"$work/cubins.c"
compile "$work/with" runtime/app/main.c "$work/cubins.c"
compile "$work/without" runtime/app/main.c

export BURIN_NVRTC=/nonexistent/libnvrtc.so.13
weights=tests/golden/llama_tiny-small-f32/model.safetensors
ask() { "$work/$1" bench -m $weights --device cuda -p 8 -n 2 -r 1; }
ask with
status=0
ask without 2>"$work/said" || status=$?
cat "$work/said"
[ $status = 4 ]
grep -q 'gen --aot sm_80 puts them into the binary' "$work/said"
