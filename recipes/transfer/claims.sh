#!/usr/bin/env bash
# Two claims about transfer, judged by STS and by the seven transfer tasks; a table each.
#     recipes/transfer/claims.sh WORK DATA [PARALLEL] [NAME…]      WORK/texts by recipes/compare/texts.py; NAME: mlm, encoders
set -euo pipefail
work=$1 data=$2 parallel=${3:-1} model=${MODEL:-builtin-base} seeds=${SEEDS:-3} steps=${STEPS:-200}
shift $(($# < 3 ? $# : 3))

claim() { # NAME METHODS, then the settings
    local name=$1 methods=$2
    shift 2
    isotrope compare sentences="$work/texts/sentences.txt.xz" documents="$work/texts/documents.txt.xz" --methods "$methods" "$@" \
        --model "$model" --seeds "$seeds" --parallel "$parallel" --data-dir "$data" --suite sts,transfer \
        --max-steps "$steps" --eval-steps "$steps" --batch-size 128 --learning-rate 1e-4 --max-length 64 \
        --output "$work/runs/transfer-$name" --markdown "$work/transfer-$name.md"
}

# SimCSE, section 6: masked language modelling added to the contrast helps transfer and costs STS.
mlm() { claim mlm simcse,mlm-01=simcse,mlm-1=simcse --set mlm-01.mlm-weight=0.1 --set mlm-1.mlm-weight=1; }

# Encoders that predict neighbours or restore a text, against a contrast of dropout views.
encoders() { claim encoders "simcse,${ENCODERS:-skip-thought,quick-thoughts,bart,mlm}"; }

for name in ${@:-mlm encoders}; do "$name"; done
