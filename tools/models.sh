#!/bin/sh
# Trains and exports all models that ship, and the scorer: half an hour on two cores.
#
#     tools/models.sh DATA PACKAGES OUT      # make models DATA=… PACKAGES=…
#
# DATA is the folder of data sets, PACKAGES that of tools/word_translations.py, which writes two
# files into DATA. Cards with results: rejoinder evaluate, rejoinder card.
set -eu
data=$1 packages=$2 out=$3
mkdir -p "$out"
rejoinder extract "$data"/conversations/*.jsonl.zst --out "$out/pairs"
[ -e "$data/lexical/osm.jsonl" ] || python tools/word_translations.py "$packages" "$data/lexical"
for recipe in rejoinder-base rejoinder-multi dan-best; do
    rejoinder train --config $recipe --pairs "$out/pairs" --data "$data" --seed 1 --out "$out/$recipe.run"
done
export_as() { # recipe, name, options
    run=$1 name=$2
    shift 2
    rejoinder export "$out/$run.run/model" --dtype int8 "$@" --name "$name" --out "$out/$name"
}
rejoinder export "$out/rejoinder-multi.run/model" --dtype float16 --max-words 133000 --letter-buckets 70000 --out "$out/multi"
python tools/language_rows.py "$out/multi" "$data" "$out/multi-rows"
rejoinder export "$out/multi-rows" --dtype int8 --name rejoinder-multi --out "$out/rejoinder-multi"
export_as rejoinder-base rejoinder-base --max-words 40000 --letter-buckets 8192 --spelling --saturation 3
export_as rejoinder-base rejoinder-small --dim 256 --max-words 22000 --letter-buckets 4096 --spelling
export_as dan-best rejoinder-research --max-words 40000 --unknown-buckets 4096
rejoinder fit-scorer --model "$out/rejoinder-base" --data "$data" --sets stsb,sts,contrasts --out "$out/scorer"
