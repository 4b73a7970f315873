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

"$binary" info --last-start >"$folder/last"
says last "planned bytes"
says last "^  kv "
says last "^  total "
"$binary" info --last-start --json >"$folder/last.json"
says last.json '"last_start": '

"$binary" plan -m "$weights" -c 64 >"$folder/plan" # of the GPU that it would take
says plan "compute capability"

"$binary" eval --ids "$folder/ids" -m "$weights" -c 64 --device cpu >"$folder/cpu" 2>"$folder/log"
if grep -q "on cuda" "$folder/log"; then
    echo "start: --device cpu took a GPU"
    exit 1
fi
if "$binary" eval --ids "$folder/ids" -m "$weights" --vram-limit 900GiB 2>"$folder/log" >/dev/null; then
    echo "start: a cap above the card was accepted"
    exit 1
fi
says log "--wait-for-vram 60"
