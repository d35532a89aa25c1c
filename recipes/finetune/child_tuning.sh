#!/usr/bin/env bash
# Child-Tuning against plain fine-tuning on MRPC, RTE and STS-B: ten seeds, three epochs, tables with intervals.
#     recipes/finetune/child_tuning.sh WORK DATA [PARALLEL] [TASK…]      TASK: mrpc, rte, stsb
set -euo pipefail
work=$1 data=$2 parallel=${3:-1} model=${MODEL:-builtin-base} seeds=${SEEDS:-10} rate=${RATE:-5e-5} batch=${BATCH:-32} epochs=${EPOCHS:-3}
share=${SHARE:-0.3} samples=${SAMPLES:-2048} pooling=${POOLING:+--pooling $POOLING}
shift $(($# < 3 ? $# : 3))

task() { # NAME TRAIN TEST
    local name=$1 train=$2 test=$3 rows steps own=()
    rows=$(($(gzip -dc "$train" | wc -l) - 1))
    steps=$((rows * epochs / batch))
    for arm in plain F D; do own+=(--set "$arm.test=$test"); done
    isotrope compare "$train" --methods plain=fine-tune,F=fine-tune,D=fine-tune "${own[@]}" \
        --set F.child-tuning=F --set D.child-tuning=D --set F.child-p="$share" --set D.child-p="$share" --set D.child-samples="$samples" \
        --model "$model" $pooling --suite own --seeds "$seeds" --parallel "$parallel" \
        --max-steps "$steps" --eval-steps "$steps" --batch-size "$batch" --learning-rate "$rate" --warmup-ratio 0.1 --max-length 128 --held-out 0 \
        --output "$work/runs/child-$name" --markdown "$work/child-$name.md"
}

mrpc() { task mrpc "$data/transfer/mrpc.train.tsv.gz" "$data/transfer/mrpc.test.tsv.gz"; }
rte() { task rte "$data/nli/rte.train.tsv.gz" "$data/nli/rte.dev.tsv.gz"; }
stsb() { task stsb "$data/sts/stsb.train.tsv.gz" "$data/sts/stsb.dev.tsv.gz"; }

for name in ${@:-mrpc rte stsb}; do "$name"; done
