#!/usr/bin/env bash
# tests/gpu/start.sh BINARY WEIGHTS -- A binary on the virtual GPU that executes says which device it
# took, and keeps what its start planned and obtained for `info --last-start`.
set -euo pipefail
binary=$1 weights=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export XDG_CACHE_HOME=$folder
says() { grep -q -- "$2" "$folder/$1" || { echo "start: '$2' is missing:"; cat "$folder/$1"; exit 1; }; }

if "$binary" info --last-start >"$folder/none" 2>&1; then
    echo "start: there was a last start before the first"
    exit 1
fi
says none "has not started on a GPU yet"

echo "1 2 3" >"$folder/ids"
"$binary" eval --ids "$folder/ids" -m "$weights" -c 64 -b 8 >"$folder/out" 2>"$folder/log"
says log "on cuda:0"

# What a start takes from the user is told unasked, and not among what it answers.
BURIN_KERNEL_CACHE=/dev/null/kernels "$binary" eval --ids "$folder/ids" -m "$weights" -c 64 -b 8 \
    >"$folder/again" 2>"$folder/log"
says log ": note: each start compiles .* kernels again: .* /dev/null/kernels"
cmp "$folder/again" "$folder/out"

"$binary" info --last-start >"$folder/last"
says last "planned bytes"
says last "^  kv "
says last "^  total "
says last "^The last start that succeeded: 20..-..-.. .*, on cuda:0"
"$binary" info --last-start --json >"$folder/last.json"
says last.json '"last_start": '

"$binary" plan -m "$weights" -c 64 >"$folder/plan" # of the GPU that it would take
says plan "compute capability"

"$binary" eval --ids "$folder/ids" -m "$weights" -c 64 --device cpu >"$folder/cpu" 2>"$folder/log"
if grep -q "on cuda" "$folder/log"; then
    echo "start: --device cpu took a GPU"
    exit 1
fi
if "$binary" eval --ids "$folder/ids" -m "$weights" --device cuda --vram-limit 900GiB 2>"$folder/log" >/dev/null; then
    echo "start: a cap above the card was accepted"
    exit 1
fi
says log "(--vram-limit)"
"$binary" info --last-start | cmp - "$folder/last" # a start that fails is none of them

# What is in its place and isn't ours is none.
kept=$(echo "$folder"/burin/start/*.txt)
for other in "mkfifo" "touch" "cp $binary" "mkdir"; do
    rm -f "$kept"
    $other "$kept"
    if timeout 20 "$binary" info --last-start >"$folder/none" 2>"$folder/log" || [ -s "$folder/none" ]; then
        echo "start: --last-start shows what '$other' left"
        exit 1
    fi
    says log "has not started on a GPU yet"
done
rmdir "$kept"

# Its memory is not the CPU's: no bandwidth, no threads.
"$binary" bench -m "$weights" -p 4 -n 2 -r 1 -t 1,2 >"$folder/bench" 2>"$folder/log"
says bench "^on cuda:0, "
"$binary" bench -m "$weights" -p 4 -n 2 -r 1 -o json >"$folder/bench.json" 2>"$folder/log"
says bench.json '"device": "cuda:0, '
if grep -i "bandwidth\|threads" "$folder/bench" "$folder/bench.json"; then
    echo "start: bench judges a GPU by the CPU's memory"
    exit 1
fi

# What one sequence has no use for is refused in words of the command's own.
if "$binary" eval --ids "$folder/ids" -m "$weights" --graphs step=1,2,4 2>"$folder/log" >/dev/null; then
    echo "start: graphs of four sequences were accepted"
    exit 1
fi
says log '--graphs step=...,4: `eval` runs one sequence at a time, step=1 is all it uses'
if grep -q -- --parallel "$folder/log"; then
    echo "start: eval has no --parallel"
    exit 1
fi
"$binary" eval --ids "$folder/ids" -m "$weights" -c 64 -b 8 --graphs step=1 >"$folder/out" 2>"$folder/log"
says log "on cuda:0"
"$binary" plan -c 64 --parallel 4 --graphs step=1,2,4 >"$folder/plan"

# KV of what can be planned only is no KV that runs.
"$binary" info >"$folder/info"
says info "^  sm120 *no .* bf16  *on a GPU: --device auto takes one; KV planned only: fp8, nvfp4"
says info "^  portable *no .* bf16 f32  "
"$binary" info --json >"$folder/info.json"
says info.json '"family": "sm120".*"kv": \["bf16"\], "kv_planned_only": \["fp8", "nvfp4"\]'
says info.json '"family": "sm120".*{"program": "step", "runs": true'

# A family that this card does not run: what there is, and why not that one.
for command in "eval --ids $folder/ids -m $weights" plan; do
    if BURIN_GPU_CARD=4GiB,sm_80 "$binary" $command --target sm120 2>"$folder/log" >/dev/null; then
        echo "start: sm120 on an sm_80 card was accepted"
        exit 1
    fi
    says log "cuda:0: --target sm120 needs compute capability 12.0, .* has 8.0"
done

# A refusal has the plan's object, rehearsed or not.
status=0
"$binary" plan --card rtx5090 --vram-limit 8MiB --json >"$folder/planned" 2>/dev/null || status=$?
refused=0
"$binary" plan --card rtx5090 --vram-limit 8MiB --json --rehearse >"$folder/rehearsed" 2>/dev/null || refused=$?
if [ $status != 3 ] || [ $refused != 3 ]; then
    echo "start: 8 MiB: plan $status, plan --rehearse $refused"
    exit 1
fi
says rehearsed '"short_by_bytes": '
cmp "$folder/planned" "$folder/rehearsed"
