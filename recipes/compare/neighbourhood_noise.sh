#!/usr/bin/env bash
# What VaSCL's gradient and radius and DCLR's complement, noise and denominator do, one table each.
#     recipes/compare/neighbourhood_noise.sh TEXT DATA WORK [PARALLEL] [NAME…]      NAME: gradient, complement, denominator
# STEPS, BATCH, LENGTH, SEEDS and MODEL change the size; SUITE=label-free needs no benchmarks (DATA may then be -).
set -euo pipefail
text=$1 data=$2 work=$3 parallel=${4:-1} model=${MODEL:-builtin-base} seeds=${SEEDS:-3} suite=${SUITE:-sts}
shift $(($# < 4 ? $# : 4))
place=()
[ "$data" = - ] || place=(--data-dir "$data")

table() { # NAME METHODS, then the settings
    local name=$1 methods=$2
    shift 2
    isotrope compare sentences="$text" --methods "$methods" "$@" --model "$model" --seeds "$seeds" --parallel "$parallel" \
        --suite "$suite" ${place[@]+"${place[@]}"} --max-steps "${STEPS:-300}" --eval-steps "${EVERY:-100}" --batch-size "${BATCH:-256}" \
        --learning-rate 1e-4 --max-length "${LENGTH:-64}" --output "$work/runs/$name" --markdown "$work/$name.md"
}

gradient() { # the paper's read-out is the mean; without a radius both gradients are one
    local methods=none=vascl own=(--set none.radius=0 --set none.pooling=mean)
    for form in head full; do
        for radius in 1 5 15; do
            local row=$form-$radius
            methods+=,$row=vascl
            own+=(--set "$row.radius=$radius" --set "$row.neighbourhood-gradient=$form" --set "$row.pooling=mean")
        done
    done
    table gradient "$methods" "${own[@]}"
}

complement() { # the paper's read-out is [CLS]
    table complement simcse,auto=dclr,labelled=dclr,none=dclr --set simcse.pooling=cls --set auto.pooling=cls --set labelled.pooling=cls \
        --set none.pooling=cls --set labelled.complement=builtin --set none.threshold=none
}

denominator() {
    local methods=simcse own=(--set simcse.pooling=cls)
    for positive in true false; do
        for noise in 0 1; do
            local row=positive-$positive-noise-$noise
            methods+=,$row=dclr
            own+=(--set "$row.positive-in-denominator=$positive" --set "$row.noise=$noise" --set "$row.pooling=cls")
        done
    done
    table denominator "$methods" "${own[@]}"
}

for name in ${@:-gradient complement denominator}; do "$name"; done
