#!/usr/bin/env bash
# MoCo's comparison of three mechanisms against K, and SimCLR's of losses; one command and one table each.
#     recipes/compare/mechanisms.sh WORK DATA [PARALLEL] [mechanisms losses]      texts by recipes/compare/texts.py
# K is the queue's length, what is drawn from the memory bank, or for end-to-end the batch. A memory bank holds a record's
# vector from its last visit, so the text is cut to SENTENCES and passed over several times.
set -euo pipefail
work=$1 data=$2 parallel=${3:-1} model=${MODEL:-builtin-base} seeds=${SEEDS:-3} sentences=${SENTENCES:-20000}
batch=${BATCH:-128} steps=${STEPS:-600} rate=${RATE:-1e-4}
shift $(($# < 3 ? $# : 3))
text=$work/compare/mechanisms.txt

compared() { # NAME METHODS, then the settings
    local name=$1 methods=$2
    shift 2
    [ -s "$text" ] || grep -v '^$' "$work/compare/text.txt" | shuf -n "$sentences" --random-source=<(yes) >"$text"
    isotrope compare "$text" --methods "$methods" "$@" \
        --model "$model" --seeds "$seeds" --parallel "$parallel" --data-dir "$data" --eval-data "$data/sts/stsb.dev.tsv.gz" \
        --max-steps "$steps" --eval-steps $((steps / 4)) --learning-rate "$rate" --max-length 64 \
        --output "$work/runs/$name" --markdown "$work/$name.md"
}

mechanisms() {
    local rows=() own=() k
    for k in 64 256 1024; do
        rows+=("end-to-end-$k=moco")
        own+=(--set "end-to-end-$k.mechanism=end-to-end" --set "end-to-end-$k.batch-size=$k")
    done
    for k in 256 1024 4096 16384; do
        rows+=("queue-$k=moco" "bank-$k=moco")
        own+=(--set "queue-$k.queue=$k" --set "queue-$k.momentum=0.99" --set "queue-$k.batch-size=$batch")
        own+=(--set "bank-$k.mechanism=memory-bank" --set "bank-$k.queue=$k" --set "bank-$k.batch-size=$batch")
    done
    compared mechanisms "$(IFS=,; echo "${rows[*]}")" "${own[@]}"
}

losses() {
    local rows=() own=() method loss
    for method in simcse simclr; do
        rows+=("$method-info-nce=$method" "$method-nce=$method" "$method-logistic=$method" "$method-logistic-sh=$method"
            "$method-triplet=$method" "$method-triplet-sh=$method" "$method-triplet-hard=$method")
        own+=(--set "$method-nce.loss=nce")
        for loss in logistic logistic-sh; do own+=(--set "$method-$loss.loss=negative-sampling"); done
        for loss in triplet triplet-sh triplet-hard; do own+=(--set "$method-$loss.loss=triplet"); done
        for loss in logistic-sh triplet-sh; do own+=(--set "$method-$loss.mining=semi-hard"); done
        own+=(--set "$method-triplet-hard.mining=hard")
    done
    compared losses "$(IFS=,; echo "${rows[*]}")" --batch-size "$batch" "${own[@]}"
}

for name in ${@:-mechanisms losses}; do "$name"; done
