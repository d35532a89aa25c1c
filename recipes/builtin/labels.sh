#!/usr/bin/env bash
# An edition of builtin from the one before, with labels made here, on two cores of a CPU; a stage whose result exists is skipped.
#     recipes/builtin/labels.sh WORK DATA STAGE…     after `edition.sh WORK DATA text pairs`
# In this order:      nli cross agree candidates label ranked train soften judge table pack
# Without any label:  free free_agree free_candidates free_label free_train
# START (the edition before), CROSS_STEPS, SEEDS, SECONDS_OF_TRAINING (of each seed) and SHARES change it;
# PRECISION is bfloat16 where the processor has it, else auto.
set -euo pipefail
work=$(realpath "$1") data=$(realpath "$2") here=$(realpath "$(dirname "$0")")
shift 2
python=${PYTHON:-python} start=${START:-builtin} seeds=${SEEDS:-42 43 44} precision=${PRECISION:-bfloat16}
isotrope() { "$python" -m isotrope "$@"; }
done_already() { [ -e "$1" ] && echo "$(basename "$1") exists, skipped"; }

nli() { done_already "$work/nli.tsv" || "$python" "$here/label_pairs.py" nli "$work" "$data"; }
cross() { # both texts in one row; of the start, which has three classes to learn
    done_already "$work/cross/model" || isotrope train fine-tune "$work/nli.tsv" --model "$start" --output "$work/cross" --no-final-table \
        --max-steps "${CROSS_STEPS:-2400}" --batch-size 64 --max-length 64 --learning-rate 2e-4 --eval-steps 400 --precision "$precision"
}
agree() { "$python" "$here/label_pairs.py" agree "$work" "$start" "$work/cross/model"; }
teacher() { # the int8 export finds the same neighbours in a third of the time
    done_already "$work/teacher" || isotrope export "$start" "$work/teacher" --int8
}
candidates() {
    done_already "$work/candidates.tsv" && return
    teacher
    "$python" "$here/label_pairs.py" candidates "$work" "$work/teacher" "$work/candidates.tsv"
}
label() {
    done_already "$work/sources/labelled.tsv" ||
        "$python" "$here/label_pairs.py" label "$work" "$work/candidates.tsv" "$work/sources/labelled.tsv" "$work/cross/model"
}
ranked() {
    done_already "$work/sources/ranked.tsv" && return
    teacher
    "$python" "$here/ranked_pairs.py" "$work" "$work/teacher"
}
train() { # one seed after the other, then the mean of their weights
    local seed
    for seed in $seeds; do
        done_already "$work/labelled-seed-$seed/model" && continue
        (cd "$work" && isotrope train --config "$here/labelled.yaml" --model "$start" --output "$work/labelled-seed-$seed" --eval-data "$work/dev.tsv" --seed "$seed" \
            --no-final-table --max-seconds "${SECONDS_OF_TRAINING:-1000}" --precision "$precision")
    done
    done_already "$work/labelled/model" || "$python" "$here/weights.py" average "$work/labelled/model" "$work"/labelled-seed-*/model
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
free() { # no label and no pair that a person made: a teacher from the raw base, at its best after some dozens of steps
    done_already "$work/sentences.txt" || "$python" "$here/texts.py" sentences "$work"
    done_already "$work/free/model" || isotrope train promptbert "$work/sentences.txt" --model builtin-base --output "$work/free" --eval-data "$work/dev.tsv" \
        --no-final-table --max-steps 60 --eval-steps 10 --batch-size 512 --max-length 48 --learning-rate 1e-4 --precision "$precision"
}
free_agree() { "$python" "$here/label_pairs.py" agree "$work" "$work/free/model"; }
free_candidates() { done_already "$work/free-candidates.tsv" || "$python" "$here/label_pairs.py" candidates "$work" "$work/free/model" "$work/free-candidates.tsv" 0.5; }
free_label() {
    done_already "$work/sources/free-labelled.tsv" ||
        "$python" "$here/label_pairs.py" label "$work" "$work/free-candidates.tsv" "$work/sources/free-labelled.tsv"
}
free_train() {
    done_already "$work/free-labelled/model" || isotrope train cosent "$work/sources/free-labelled.tsv" --model "$work/free/model" --output "$work/free-labelled" \
        --eval-data "$work/dev.tsv" --no-final-table --max-steps "${FREE_STEPS:-150}" --eval-steps 25 --batch-size 256 --max-length 64 --learning-rate 1e-4 --precision "$precision"
}
table() { "$python" "$here/choice.py" goals "$MODEL" "$data"; } # once, of the chosen one
pack() { "$python" "$here/weights.py" pack "$work/builtin" "$MODEL"; }
for stage in "$@"; do
    began=$SECONDS
    echo "$(date +%T) begin $stage"
    "$stage"
    echo "$(date +%T) end $stage, $((SECONDS - began)) s"
done
