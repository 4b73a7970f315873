#!/usr/bin/env bash
# tests/repo/emitted.sh -- The emitted text: the same bytes when generated twice, nothing that
# clang-format would change, no path of this machine. (tools/build compiles it with warnings
# as errors.) Prints the time that gen takes.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
export PATH=$PWD/gen:$PATH

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

check() { # description, variant, recipe
    local name=$1-$2-$3 begin end
    begin=$(date +%s%N)
    gen --model "models/$1.lua" --variant "$2" --quant "$3" --out "$work/a/$name" >/dev/null
    end=$(date +%s%N)
    gen --model "models/$1.lua" --variant "$2" --quant "$3" --out "$work/b/$name" >/dev/null
    if diff -r "$work/a/$name" "$work/b/$name"; then
        echo "[ ok ] $name: twice the same bytes, $(((end - begin) / 1000000)) ms"
    else
        echo "[FAIL] $name: generated twice, two texts" && failed=1
    fi
    if grep -rlE "$PWD|/home/|/tmp/" "$work/a/$name"; then
        echo "[FAIL] $name: the text names a place of this machine" && failed=1
    fi
    if ! command -v clang-format >/dev/null; then
        echo "[skip] $name: clang-format is missing"
    elif find "$work/a/$name" -name '*.[ch]' -print0 |
        xargs -0 clang-format --style=file:.clang-format --dry-run -Werror; then
        echo "[ ok ] $name: clang-format changes nothing"
    else
        echo "[FAIL] $name: clang-format would change it" && failed=1
    fi
}

check llama smollm2-135m q4_1
check llama_tiny small f32
check llama_tiny groups q4_1
check gemma4_tiny e2b bf16
check gemma4_tiny 26b-a4b bf16
check gemma4 26b-a4b bf16
exit $failed
