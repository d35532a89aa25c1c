#!/usr/bin/env bash
# The third edition, stage by stage; a stage whose result exists is skipped, so a run that broke off goes on.
#     recipes/builtin/third.sh WORK DATA STAGE…     DATA: corpora/, pairs/, nli/ (text, pairs), sts/, transfer/, retrieval/ (table)
# At home:            text pairs parts
# On the GPU:         [pilot] cut tokens [base] retromae contrast average [mine hard | last] [distil]
# Either:             judge table pack
# Stages start from START; else from WORK/base/model, where there is one, or builtin-base.
# BASE_SECONDS, RETRO_SECONDS, CONTRAST_SECONDS, HARD_SECONDS, DISTIL_SECONDS, PILOT_STEPS, STEPS (an eighth of them between evaluations), SEEDS, BATCH, CHUNK, ROWS, PAIRS and LIMIT_MIB make it small;
# MASK_RATE, BASE_RATE and BASE_STEPS are those of `base`; PYTHON names the interpreter. rehearsal.sh runs all of it in miniature.
set -euo pipefail
work=$(realpath "$1") data=$(realpath "$2") here=$(realpath "$(dirname "$0")")
shift 2
python=${PYTHON:-python} seeds=${SEEDS:-42 43 44} steps=${STEPS:-1200} batch=${BATCH:-2048} chunk=${CHUNK:-1024}
dev=(--eval-data "$work/dev.tsv")
isotrope() { "$python" -m isotrope "$@"; }
done_already() { [ -e "$1" ] && echo "$(basename "$1") exists, skipped"; }
start() { if [ -n "${START:-}" ]; then echo "$START"; elif [ -e "$work/base/model" ]; then echo "$work/base/model"; else echo builtin-base; fi; }
keep() { [ "$work/out/$1.sums" -nt "$work/$1/model" ] || "$python" "$here/carried.py" split "$work/$1/model" "$work/out"; } # to be fetched at once
made() { done_already "$work/$1/model" && keep "$1"; } # one that was stopped before it was cut is cut now
resumed() { if [ -e "$work/$1/run.json" ]; then echo --resume; fi; }

text() { # 2 minutes on one core: no sentence of any set that is reported
    local against=() missing=() file corpora
    for file in "$data"/retrieval/{cranfield,dbpedia_small,msmarco_small}.{corpus,queries}.tsv.gz \
        "$data"/retrieval/{wikiqa,flickr30k_captions}.{dev,test}.tsv.gz "$data"/{clustering,probing,parallel}/*.tsv.gz; do against+=(--against "$file"); done
    corpora=$(ls "$data"/corpora/*.txt.xz | grep -v -e textbooks -e wikitext2) # textbooks: CC BY-NC-SA in part
    for file in $corpora "$data"/pairs/*.tsv.* "$data/nli/triples.tsv.gz"; do
        done_already "$work/text/$(basename "$file")" || missing+=("$file")
    done
    [ ${#missing[@]} = 0 ] || isotrope leaks "${missing[@]}" --data-dir "$data" "${against[@]}" --output "$work/text" # the sets are read once
}
pairs() { # 3 minutes
    done_already "$work/sources/triples.tsv.xz" && return
    "$python" "$here/pair_sources.py" "$work"
    "$python" "$here/texts.py" supervised "$work" "$data"
    xz -9c "$work/permitted-captions.tsv" >"$work/sources/triples.tsv.xz"
    [ -e "$work/dev.tsv" ] || "$python" "$here/../development/clean_dev.py" "$data" "$work/dev.tsv"
}
parts() { # what travels: sources, held-out sets and the sets of the table first, then the corpora
    mkdir -p "$work/data/retrieval"
    cp -r "$data/sts" "$work/data/" && cp "$data"/retrieval/{cranfield,dbpedia_small,msmarco_small}.* "$work/data/retrieval/"
    local tracked=$(cd "$here/../.." && git ls-files -z | xargs -0 cat | wc -c) # they travel with every call, which takes 64 MiB
    cd "$work" && "$python" "$here/carried.py" parts "$work" "${LIMIT_MIB:-$((62 - tracked / 1048576))}" dev.tsv held/retrieval/* data/sts/*.test* data/retrieval/* \
        sources/{titles,questions,paraphrases,captions,scored,triples}.tsv.xz text/{captions,forum_docs,wikinews_docs,techdocs_docs,dialog_sgd,transcripts_docs,wiki2_docs,books2_docs,wiki_docs,books_docs}.txt.xz
}
train() { # NAME MODEL RECIPE SEED, then settings
    local name=$1 model=$2 recipe=$3 seed=$4
    shift 4
    made "$name" && return
    cd "$work" && isotrope train --config "$recipe" --model "$model" --output "$work/$name" $(resumed "$name") "${dev[@]}" --seed "$seed" --no-final-table \
        --eval-steps "$((steps / 8 + 1))" --batch-size "$batch" --chunk-size "$chunk" "$@" && keep "$name"
}
pilot() { # 400 steps each, at once, while corpora are brought: the sources that need none, from the shipped base
    grep -v "name: spans" "$here/third.yaml" >"$work/labels.yaml"
    sed -e '/name: triples/s/share: 4/share: 3/' -e '/name: scored/s/share: 2/share: 1/' "$work/labels.yaml" >"$work/pilot.yaml"
    local steps=${PILOT_STEPS:-400}
    train pilot "$(start)" "$work/pilot.yaml" 42 --max-steps "$steps" --learning-rate 1e-4 >"$work/pilot.log" 2>&1 &
    train pilot-rate "$(start)" "$work/pilot.yaml" 42 --max-steps "$steps" --learning-rate 2e-4 >"$work/pilot-rate.log" 2>&1 &
    train pilot-labels "$(start)" "$work/labels.yaml" 42 --max-steps "$steps" --learning-rate 1e-4 >"$work/pilot-labels.log" 2>&1 &
    wait
    chosen "$(start)" "$work"/pilot*/model | tee "$work/pilots.txt"
}
cut() { done_already "$work/sources/spans.tsv" || "$python" "$here/cut_text.py" "$work" ${PAIRS:-}; } # 90 s, one core
tokens() { # on the CPU, next to `base`: what retromae and contrast read is tokenized once, and no GPU waits for it
    cd "$work" && "$python" "$here/token_caches.py" builtin-base "$here/third.yaml" retromae=passages.txt
}
base() { # more passes over the text, by the clock: 31 steps a second on an H200, so 300 s are 9,000 steps, 1.2 billion tokens
    made base && return
    local steps=${BASE_STEPS:-9000} # the log and checkpoints lie a third of them apart; the clock ends the run
    isotrope pretrain "$work"/text/*_docs*.txt.xz "$work"/text/{captions,dialog_sgd}*.txt.xz --model "${START:-builtin-base}" --output "$work/base" $(resumed base) "${dev[@]}" \
        --batch-size "${ROWS:-1024}" --max-seconds "${BASE_SECONDS:-300}" --steps "$steps" --learning-rate "${BASE_RATE:-6e-4}" --warmup-steps "$((steps / 30))" --weight-decay 0.05 \
        --mask-rate "${MASK_RATE:-0.3}" --adam-beta2 0.98 --average-decay 0.999 --save-steps "$((steps / 3))" && keep base
}
retromae() { # by the clock: 360 s are 3,300 steps, 1.7 passes
    made retromae && return
    isotrope train retromae "$work/passages.txt" --model "$(start)" --pooling mean --output "$work/retromae" $(resumed retromae) "${dev[@]}" --no-final-table \
        --max-seconds "${RETRO_SECONDS:-360}" --batch-size "${ROWS:-1024}" --max-length 128 --learning-rate 4e-4 --warmup-ratio 0.016 --weight-decay 0.05 \
        --adam-beta2 0.98 --average-decay 0.999 --eval-steps "${RETRO_EVAL:-1000}" --logging-steps 100 && keep retromae
}
contrast() { # by the clock, all seeds at once: 0.4 s a step
    local model="$work/retromae/model" seed
    [ -e "$model" ] || model=$(start)
    [ -e "$work/contrast.yaml" ] || cp "$here/third.yaml" "$work/contrast.yaml" # what the pilots taught may stand there
    for seed in $seeds; do train "contrast-$seed" "$model" "$work/contrast.yaml" "$seed" --max-seconds "${CONTRAST_SECONDS:-740}" >"$work/contrast-$seed.log" 2>&1 & done
    wait
    ls -d "$work"/contrast-*/model
}
mine() { # 40 s: hard negatives by one seed for another; the margin keeps likely answers out
    local name guide=${GUIDE:-$work/contrast-43/model}
    for name in titles questions; do
        done_already "$work/sources/$name-hard.tsv" || isotrope mine "$work/sources/$name.tsv.xz" --model "$guide" --margin 0.1 --last 30 --output "$work/sources/$name-hard.tsv"
    done
}
hard() { # from the average, a third of the rate
    sed -e 's#sources/titles.tsv.xz#sources/titles-hard.tsv#' -e 's#sources/questions.tsv.xz#sources/questions-hard.tsv#' "$work/contrast.yaml" >"$work/hard.yaml"
    steps=400 train hard "$work/average/model" "$work/hard.yaml" 42 --learning-rate 3e-5 --max-seconds "${HARD_SECONDS:-90}"
}
average() { # θ = mean over the seeds
    made average && return
    "$python" "$here/weights.py" average "$work/average/model" "$work"/contrast-4?/model && keep average
}
distil() { # TEACHER: a larger encoder of our own, trained by the same stages (START, pretrain --layers 12 --width 512 --heads 8)
    made distilled && return
    isotrope train distil "$work/passages.txt" --model "$work/average/model" --teacher "${TEACHER:?a larger encoder}" --queue "${QUEUE:-65536}" --output "$work/distilled" $(resumed distilled) "${dev[@]}" \
        --no-final-table --max-seconds "${DISTIL_SECONDS:-300}" --batch-size "$batch" --max-length 128 --learning-rate 3e-4 --eval-steps 200 && keep distilled
}
unlabelled() { # what no label and no pair taught: spans of the corpora, and vascl on single sentences
    [ -e "$work/unlabelled.yaml" ] || cp "$here/unlabelled.yaml" "$work/unlabelled.yaml"
    batch=$((batch / 2)) train unlabelled "$work/retromae/model" "$work/unlabelled.yaml" 42 --max-seconds "${HARD_SECONDS:-90}"
}
last() { # both at once
    hard >"$work/hard.log" 2>&1 &
    unlabelled >"$work/unlabelled.log" 2>&1 &
    wait
    ls -d "$work"/{hard,unlabelled}/model # one that failed is said
}
chosen() { # MODEL…: what choices are made by, and nothing that is reported: clean development pairs, held-out retrieval
    local model name
    mkdir -p "$work/choice"
    for model in "$@"; do
        name=$(basename "${model%/model}")
        [ -s "$work/choice/$name" ] || "$python" "$here/choice.py" choose "$model" "$work/dev.tsv" "$work/held" >"$work/choice/.$name" && mv -f "$work/choice/.$name" "$work/choice/$name" 2>/dev/null || true
        echo "== $name" && cat "$work/choice/$name"
    done
}
judge() { chosen builtin-base $(ls -d "$work"/{base,retromae,contrast-*,average,hard,unlabelled,distilled}/model 2>/dev/null) | tee "$work/choice.txt"; }
table() { "$python" "$here/choice.py" goals "${MODEL:-$work/average/model}" "$data"; } # once, of the chosen encoder
pack() {
    "$python" "$here/weights.py" pack "$work/builtin" "${MODEL:-$work/average/model}"
    "$python" "$here/weights.py" pack-base "$work/builtin-base" "${BASE:-$work/retromae/model}"
}
for stage in "$@"; do
    began=$SECONDS
    echo "$(date +%T) begin $stage"
    "$stage"
    echo "$(date +%T) end $stage, $((SECONDS - began)) s"
done
