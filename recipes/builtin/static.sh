#!/usr/bin/env bash
# builtin-static, stage by stage; a stage whose result exists is skipped, so a run that broke off goes on.
#     recipes/builtin/static.sh WORK DATA STAGE…     after `edition.sh WORK DATA text pairs`
# In this order:      texts teacher distil contrast average judge table pack
# Twenty minutes on one shared core, half of it the teacher. As shipped, WORK/text had forum_docs, wikinews_docs and captions of the corpora.
# MODEL, SENTENCES, EPOCHS, STEPS, SEEDS and THREADS change it; PYTHON names the interpreter.
set -euo pipefail
work=$(realpath "$1") data=$(realpath "$2") here=$(realpath "$(dirname "$0")")
shift 2
python=${PYTHON:-python} seeds=${SEEDS:-42 43 44}
export OMP_NUM_THREADS=${THREADS:-1} RAYON_NUM_THREADS=${THREADS:-1}
. "$here/stages.sh"

texts() { # sentences of the corpora, and both texts of every pair
    done_already "$work/static-texts.txt" && return
    local file
    "$python" "$here/texts.py" sentences "$work"
    for file in "$work"/sources/{titles,questions,paraphrases,captions,triples,scored}.tsv.xz; do
        xzcat "$file" | tail -n +2 | cut -f1,2 | tr '\t' '\n'
    done | cat - "$work/sentences.txt" | LC_ALL=C sort -u >"$work/static-texts.txt.part"
    mv "$work/static-texts.txt.part" "$work/static-texts.txt"
}
teacher() { done_already "$work/teacher" || isotrope export "${MODEL:-builtin}" "$work/teacher" --int8; } # three times as fast on a CPU
distil() {
    done_already "$work/static-distilled" || isotrope distil "$work/teacher" "$work/static-texts.txt" --to static --output "$work/static-distilled" \
        --dimension 256 --sentences "${SENTENCES:-120000}" --epochs "${EPOCHS:-6}" --batch-size 512 --learning-rate 2e-2
}
contrast() { # static.yaml: 3 steps a second
    local seed
    cd "$work"
    for seed in $seeds; do
        done_already "$work/static-$seed/model" || isotrope train --config "$here/static.yaml" --model "$work/static-distilled" --output "$work/static-$seed" \
            --eval-data "$work/dev.tsv" --seed "$seed" --no-final-table ${STEPS:+--max-steps "$STEPS"}
    done
}
average() { # θ = half the mean over the seeds, half the start
    done_already "$work/static-seeds" || "$python" "$here/weights.py" average "$work/static-seeds" "$work"/static-4?/model
    done_already "$work/static" || "$python" "$here/weights.py" average "$work/static" "$work/static-distilled" "$work/static-seeds"
}
judge() { # what choices are made by, and nothing that is reported
    local model
    for model in "$work/static-distilled" "$work"/static-4?/model "$work"/static-seeds "$work/static"; do
        echo "== $model" && "$python" "$here/choice.py" choose "$model" "$work/dev.tsv" "$work/held"
    done
}
table() { isotrope evaluate "$work/static" --suite sts,retrieval --data-dir "$data"; } # once, of the chosen one
pack() { done_already "$work/builtin-static" || "$python" "$here/weights.py" pack "$work/builtin-static" "$work/static"; }
run_stages "$@"
