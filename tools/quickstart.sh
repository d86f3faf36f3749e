#!/bin/bash
# How many heads does a task need, and what does each learn? On built-in text, with the release build.
# usage: tools/quickstart.sh [FOLDER]   FOLDER: for the text, the runs and the report; default runs/quickstart
set -euo pipefail
cd "$(dirname "$0")/.."

headlight=build/release/bin/headlight
out=${1:-runs/quickstart}
mkdir -p "$out"
out=$(realpath --relative-base=. "$out")

# Prints a command so that it can be pasted, and runs it.
show() {
  local word line='$'
  for word; do [[ $word =~ ^[[:alnum:]_./,=-]+$ ]] && line+=" $word" || line+=" ${word@Q}"; done
  printf '\n%s\n' "$line"
  "$@"
}

# Passages of two seeds differ, so valid text is new text.
show $headlight data make relations --language en --count 24000 --seed 1 --out "$out/train.jsonl"
show $headlight data make relations --language en --count 1000 --seed 2 --out "$out/valid.jsonl"

# A finished run is not trained again: a second quick start is quick.
show $headlight compare --data "$out/train.jsonl" --valid "$out/valid.jsonl" --out "$out/compare" \
  --heads 1,2,4,8 --dim 64 --feed-forward 64 --layers 2 --batch 32 --epochs 10 --lr 0.003 --schedule cosine \
  --positions relative --relative-distance 12 --embedding-std 0.1 --dropout 0 --attention-dropout 0 --probe-every off

run=$out/compare/heads-8_seed-1
sentence=$(sed -n '1s/.*"text": *"\([^"]*\)".*/\1/p' "$out/valid.jsonl")
show $headlight heads "$run" --gold "$out/valid.jsonl" --texts 1000
show $headlight show "$run" "the king, quite tiny today, was near the angry castle girl. she dropped the cup." --layer 0
show $headlight show "$run" "$sentence" --format html --out "$out/attention.html"
show $headlight show "$run" "$sentence" --format png --out "$out/attention.png"

printf '\nThe report: %s\nEvery head on one sentence: %s\nYour own text: %s\n' \
  "$(realpath "$out/compare/report.html")" "$(realpath "$out/attention.html")" \
  "$headlight compare --data FILE --heads 1,2,4,8 --seeds 3"
