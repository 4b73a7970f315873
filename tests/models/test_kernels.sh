#!/usr/bin/env bash
# tests/models/test_kernels.sh -- Kernels of whole models through the real NVRTC, without a GPU:
# every one on every architecture (those of the second model on the oldest), with registers
# and shared memory; and how long NVRTC takes for the largest set, cold and from the cache.
#
#   tests/models/test_kernels.sh [ARCH ...]      on these instead
#
# A spill or a stack frame is an error. 77 without NVRTC.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
export PATH=$PWD/gen:$PATH

runtime=build/cmake/release/libburin_runtime.a
[ -e $runtime ] || { echo "kernels: $runtime is not there: build makes it"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A model's own program of tools/kernels.c; its CPU code is not compiled for it.
make_program() { # variant, recipe -> $work/VARIANT-RECIPE
    local folder=$work/gen-$1-$2
    gen --model models/gemma4.lua --variant "$1" --quant "$2" --target cuda --out "$folder" >/dev/null
    ${CC:-cc} -std=c11 -O1 -D_GNU_SOURCE -I. -I"$folder" -o "$work/$1-$2" tools/kernels.c \
        "$folder"/*.c $runtime -lm -ldl -lpthread
}

make_program 26b-a4b q4_0
make_program e2b bf16

echo "all of gemma4 26b-a4b for one architecture, cold and cached:"
status=0
"$work/26b-a4b-q4_0" --anew sm_90a >"$work/cold" || status=$?
[ $status = 0 ] || { cat "$work/cold"; exit $status; }
"$work/26b-a4b-q4_0" sm_90a >"$work/cached"
tail -n 1 "$work/cold"
tail -n 1 "$work/cached"
grep -q " 0 compiled" "$work/cached" || { echo "kernels: compiled what is cached"; exit 1; }

"$work/26b-a4b-q4_0" "$@" # what was compiled in an earlier run is not compiled again
[ $# -gt 0 ] || set -- sm_80
"$work/e2b-bf16" "$@"
