#!/usr/bin/env bash
# tests/repo/cuda_calls.sh -- Every function of NVIDIA's that runtime/device/cuda lists is a
# symbol of the toolkit's library, and is declared there as we declare it. Where a library or
# a header is not installed, that part is left out; 77 where there is none of it.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."

toolkit=${CUDA_HOME:-/usr/local/cuda}
calls=runtime/device/cuda
n_checked=0

# The names of a list: X(cuInit, ...) -> cuInit
names() {
    sed -n 's/^    X(\([A-Za-z0-9_]*\),.*/\1/p' "$1"
}

# Names that a library lacks, of those of a header's list.
check_symbols() { # header library
    [ -e "$2" ] || return 0
    local lacking
    lacking=$(comm -23 <(names "$1" | sort) <(nm -D --defined-only "$2" | awk '{print $3}' |
        sed 's/@.*//' | sort))
    if [ -n "$lacking" ]; then
        printf '%s lists what %s has not:\n%s\n' "$1" "$2" "$lacking" >&2
        exit 1
    fi
    printf '%s: %d functions, all in %s\n' "$1" "$(names "$1" | wc -l)" "$(basename "$2")"
    n_checked=$((n_checked + 1))
}

check_symbols $calls/driver.h "$toolkit/lib64/stubs/libcuda.so"
check_symbols $calls/nvrtc.h "$toolkit/lib64/libnvrtc.so"
check_symbols $calls/cublaslt.h "$toolkit/lib64/libcublasLt.so"
check_symbols $calls/nvml.h "$toolkit/lib64/stubs/libnvidia-ml.so"

if [ -e "$toolkit/include/cuda.h" ]; then
    g++ -std=c++17 -Wall -Wextra -fsyntax-only -I. -isystem "$toolkit/include" \
        tests/gpu/declarations.cpp
    echo "declarations: as in $(basename "$(readlink -f "$toolkit")")'s headers"
    n_checked=$((n_checked + 1))
fi
[ $n_checked -gt 0 ] || { echo "no CUDA toolkit here"; exit 77; }
