#!/usr/bin/env bash
# builtin-static: the static student of an edition of builtin, packed. A minute on a GPU, half an hour on two cores.
#     recipes/builtin/static.sh WORK MODEL [SENTENCES] [EPOCHS]        WORK/sentences.txt is what texts.py drew
# As shipped: 36,000 sentences and 8 epochs. With a GPU: 1000000 and 3; then look at a clean development set
# (recipes/development) before and after: benchmarks/vector_bits.py clean_dev.tsv --model WORK/static
set -euo pipefail
work=$1 model=$2 sentences=${3:-36000} epochs=${4:-8} here=$(dirname "$0")

isotrope distil "$model" "$work/sentences.txt" --to static --output "$work/static" \
    --dimension 256 --sentences "$sentences" --epochs "$epochs" --batch-size 512 --learning-rate 2e-2
python "$here/weights.py" pack "$work/builtin-static" "$work/static"
