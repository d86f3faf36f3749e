#!/bin/bash
# Layers, format, and clang-tidy over the library and the program (tests and benchmarks are exempt from clang-tidy).
# usage: tools/lint.sh [BUILD]   BUILD: a configured build folder; default build/asan, configured if it is not there
set -euo pipefail
cd "$(dirname "$0")/.."

build=${1:-build/asan}
tools/check_layers.py
git ls-files -co --exclude-standard '*.cc' '*.h' | xargs clang-format --dry-run -Werror
echo "clang-format: all sources are formatted"

if [ ! -f "$build/compile_commands.json" ]; then
  cmake --preset asan -B "$build" >/dev/null
fi
find headlight apps -name '*.cc' ! -name '*_test.cc' ! -name '*_bench.cc' ! -name '*_fuzz.cc' -print0 |
  sort -z | xargs -0 -n 1 -P "$(nproc)" clang-tidy --quiet -p "$build" 2> >(grep -v 'warnings* generated' >&2)
echo "clang-tidy: nothing found"
