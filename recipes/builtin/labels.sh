#!/usr/bin/env bash
# The fifth edition of builtin from the fourth, with labels made here, on two cores of a CPU; a stage whose result exists is skipped.
#     recipes/builtin/labels.sh WORK DATA STAGE…     after `edition.sh WORK DATA text pairs`
# In this order:      nli cross agree candidates label train soften judge table pack
# An hour on two quiet cores: cross 16 minutes on one of them, candidates 5, label 6, train 24.
# START (the edition before), CROSS_STEPS, SECONDS_OF_TRAINING and SHARES change it; PRECISION is bfloat16 where the processor has it, else auto.
set -euo pipefail
work=$(realpath "$1") data=$(realpath "$2") here=$(realpath "$(dirname "$0")")
shift 2
python=${PYTHON:-python} start=${START:-builtin} precision=${PRECISION:-bfloat16}
. "$here/stages.sh"

nli() { done_already "$work/nli.tsv" || "$python" "$here/label_pairs.py" nli "$work" "$data"; }
cross() { # both texts in one row; of the start, which has three classes to learn
    done_already "$work/cross/model" || OMP_NUM_THREADS=1 isotrope train fine-tune "$work/nli.tsv" --model "$start" --output "$work/cross" --no-final-table \
        --max-steps "${CROSS_STEPS:-1000}" --batch-size 64 --max-length 64 --learning-rate 2e-4 --eval-steps 250 --precision "$precision"
}
agree() { "$python" "$here/label_pairs.py" agree "$work" "$work/cross/model" "$start"; }
candidates() { # the int8 export finds the same neighbours in a third of the time
    done_already "$work/candidates.tsv" && return
    done_already "$work/teacher" || isotrope export "$start" "$work/teacher" --int8
    "$python" "$here/label_pairs.py" candidates "$work" "$work/teacher"
}
label() { done_already "$work/sources/labelled.tsv" || "$python" "$here/label_pairs.py" label "$work" "$work/cross/model"; }
train() {
    done_already "$work/labelled/model" && return
    cd "$work" && isotrope train --config "$here/labelled.yaml" --model "$start" --output "$work/labelled" --eval-data "$work/dev.tsv" --seed 42 \
        --no-final-table --max-seconds "${SECONDS_OF_TRAINING:-1440}" --precision "$precision"
}
soften() { # several shares of what training changed, to choose from
    local share
    for share in ${SHARES:-0.25 0.5 0.75}; do
        done_already "$work/labelled-$share/model" || "$python" "$here/weights.py" between "$work/labelled-$share/model" "$share" "$start" "$work/labelled/model"
    done
}
judge() { # what choices are made by, and nothing that is reported
    local model
    for model in "$start" "$work"/labelled*/model; do
        echo "== $model" && "$python" "$here/choice.py" choose "$model" "$work/dev.tsv" "$work/held"
    done
}
table() { "$python" "$here/choice.py" goals "$MODEL" "$data"; } # once, of the chosen one
pack() { "$python" "$here/weights.py" pack "$work/builtin" "$MODEL"; }
run_stages "$@"
