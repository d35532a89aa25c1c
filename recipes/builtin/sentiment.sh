#!/usr/bin/env bash
# The sixth edition of builtin from the fifth, with what two open lexicons know of sentiment, on two cores of a CPU; a stage whose result exists is skipped.
#     recipes/builtin/sentiment.sh WORK DATA STAGE…     after `edition.sh WORK DATA text pairs` and
#     pip install --no-deps vaderSentiment==3.3.2 textblob==0.20.1
# In this order:      score train soften judge table pack
# Forty minutes on two quiet cores: score 1, train 25 (both runs at once, one core each), judge 4 a model.
# START (the edition before), SECONDS_OF_TRAINING and SHARES change it; PRECISION is bfloat16 where the processor has it, else auto.
set -euo pipefail
work=$(realpath "$1") data=$(realpath "$2") here=$(realpath "$(dirname "$0")")
shift 2
python=${PYTHON:-python} start=${START:-builtin} precision=${PRECISION:-bfloat16}
export ISOTROPE_METHODS=$here/word_scores.py
. "$here/stages.sh"

score() { done_already "$work/sentiment.tsv" || "$python" "$here/sentiment_text.py" "$work"; }
one() { # NAME SEED RATE
    done_already "$work/$1/model" || OMP_NUM_THREADS=1 isotrope train word-scores "$work/sentiment.tsv" --model "$start" --teacher "$start" --output "$work/$1" \
        --seed "$2" --learning-rate "$3" --max-seconds "${SECONDS_OF_TRAINING:-1500}" --batch-size 64 --max-length 96 --held-out 0 --eval-steps 100000 \
        --precision "$precision" --no-final-table
}
train() {
    one sentiment-1 42 2e-4 &
    local first=$!
    one sentiment-2 43 3e-4
    wait "$first"
    done_already "$work/sentiment/model" || "$python" "$here/weights.py" average "$work/sentiment/model" "$work/sentiment-1/model" "$work/sentiment-2/model"
}
soften() { # several shares of what training changed, to choose from
    local share
    for share in ${SHARES:-0.5 0.75}; do
        done_already "$work/sentiment-$share/model" || "$python" "$here/weights.py" between "$work/sentiment-$share/model" "$share" "$start" "$work/sentiment/model"
    done
}
judge() { # what choices are made by, and nothing that is reported
    local model
    for model in "$start" "$work/sentiment/model" "$work"/sentiment-0*/model; do
        echo "== $model" && "$python" "$here/choice.py" choose "$model" "$work/dev.tsv" "$work/held" && "$python" "$here/feelings.py" "$model" "$data"
    done
}
table() { "$python" "$here/choice.py" goals "$MODEL" "$data"; } # once, of the chosen one
pack() { "$python" "$here/weights.py" pack "$work/builtin" "$MODEL"; }
run_stages "$@"
