#!/usr/bin/env bash
# tests/repo/lint.sh -- clang-format would change nothing; clang-tidy has nothing to say.
#
#   tests/repo/lint.sh             format, and tidy where build/cmake has compile commands
#   tests/repo/lint.sh --format    format only: two seconds
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."

command -v clang-format >/dev/null || { echo "lint: clang-format is missing"; exit 77; }

mapfile -t sources < <(find runtime tests -name '*.[ch]' -o -name '*.cpp' | sort)
clang-format --dry-run -Werror "${sources[@]}"
echo "lint: clang-format: ${#sources[@]} files"
[ "${1:-}" != --format ] || exit 0

commands=build/cmake/release/compile_commands.json
if ! command -v clang-tidy >/dev/null || [ ! -e $commands ]; then
    echo "lint: clang-tidy or $commands is missing (tools/build makes it)"
    exit 0
fi
# Only files that changed since they last passed: a stamp holds the hash of a file, of all
# headers and of the rules. A file that several targets compile is read once.
stamps=build/lint
mkdir -p $stamps
awk -v RS='},?\n' '
    match($0, /"file": "[^"]*"/) && !seen[substr($0, RSTART, RLENGTH)]++ {
        sub(/^\[/, "")
        print (n++ ? "," : "[") $0 "}"
    }
    END { print "]" }' $commands >$stamps/compile_commands.json
common=$(cat .clang-tidy $(find runtime -name '*.h' | sort) | sha256sum)
export common stamps
tidy() {
    local stamp
    stamp=$stamps/$( (echo "$common"; cat "$1"; echo "$1") | sha256sum | cut -c1-32)
    [ ! -e "$stamp" ] || return 0
    clang-tidy -quiet -p build/lint --warnings-as-errors='*' "$1" 2>/dev/null || return 1
    touch "$stamp"
}
export -f tidy
find runtime -name '*.c' | sort | xargs -P "$(nproc)" -I{} bash -c 'tidy {}'
echo "lint: clang-tidy: $(find runtime -name '*.c' | wc -l) files"
