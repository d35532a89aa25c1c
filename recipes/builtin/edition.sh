#!/usr/bin/env bash
# An edition of the built-in encoder, stage by stage; a stage whose result exists is skipped, so a run that broke off goes on.
#     recipes/builtin/edition.sh WORK DATA STAGE…   DATA: corpora/, pairs/, nli/ (text, pairs), sts/, transfer/, retrieval/ (table)
# At home:            text pairs pack_text parts
# On the GPU:         unpack [grow] base, next to it cut mine tokens source_tokens;
#                     retromae contrast [free], then for a student
#                     with fewer layers: students choose polish soften, and free_student without labels
# Either:             judge table pack
# A first stage starts from START, else builtin-base; later ones from what the stages before them made.
# LAYERS, FREE_SECONDS, BASE_SECONDS, RETRO_SECONDS, CONTRAST_SECONDS, STUDENT_SECONDS, POLISH_SECONDS, STEPS (an eighth of them between evaluations), SEEDS, BATCH, CHUNK, ROWS, PAIRS and LIMIT_MIB make it small;
# MASK_RATE, BASE_RATE and BASE_STEPS are those of `base`; PYTHON names the interpreter. rehearsal.sh runs all of it in miniature.
set -euo pipefail
work=$(realpath "$1") data=$(realpath "$2") here=$(realpath "$(dirname "$0")")
shift 2
python=${PYTHON:-python} seeds=${SEEDS:-42} steps=${STEPS:-1200} batch=${BATCH:-2048} chunk=${CHUNK:-1024}
dev=(--eval-data "$work/dev.tsv")
. "$here/stages.sh"
newest() { # the last of these that exists, else START or builtin-base
    local found=${START:-builtin-base} name
    for name in "$@"; do [ ! -e "$work/$name/model" ] || found=$work/$name/model; done
    echo "$found"
}
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
    [ -e "$work/held/pairs" ] || "$python" "$here/../development/foreign_pairs.py" "$data" "$work/held/pairs"
}
corpora() { ls "$work"/text/*_docs*.txt.xz "$work"/text/{captions,dialog_sgd}*.txt.xz; } # on the lent machine a long text is several files
pack_text() { # 5 minutes: the rows of `base`, tokenized at home, as pieces that travel; no GPU waits for them
    done_already "$work/pieces/packed.json" && return
    "$python" "$here/token_caches.py" "${START:-builtin-base}" --pack "$work/packed" $(corpora)
    mkdir -p "$work/pieces" && cd "$work/pieces" && cp ../packed/held .
    split -b "${PIECE:-14000000}" -d -a 2 ../packed/train train. && printf '%s\n' train.* | xargs -P "$(nproc)" -n 1 xz -f --lzma2=preset=9,lc=3,lp=1,pb=1 # 16-bit numbers
    cp ../packed/packed.json .
}
unpack() {
    done_already "$work/packed/packed.json" && return
    mkdir -p "$work/packed" && cd "$work/pieces" && printf '%s\n' train.*.xz | xargs -P "$(nproc)" -I{} sh -c 'xz -dc {} >../packed/{}.raw'
    cat ../packed/train.*.raw >../packed/train && rm ../packed/train.*.raw && cp held packed.json ../packed/
}
parts() { # what travels behind the packed rows: sources, held-out sets and the sets of the table first, then the corpora
    mkdir -p "$work/data/retrieval"
    cp -r "$data/sts" "$work/data/" && cp "$data"/retrieval/{cranfield,dbpedia_small,msmarco_small}.* "$work/data/retrieval/"
    local tracked=$(cd "$here/../.." && git ls-files -z | xargs -0 cat | wc -c) # they travel with every call, which takes 64 MiB
    cd "$work" && "$python" "$here/carried.py" parts "$work" "${LIMIT_MIB:-$((62 - tracked / 1048576))}" dev.tsv held/retrieval/* held/pairs/* data/sts/*.test* data/retrieval/* \
        sources/{titles,questions,paraphrases,captions,scored,triples}.tsv.xz text/{captions,forum_docs,wikinews_docs,techdocs_docs,dialog_sgd,transcripts_docs,wiki2_docs,books2_docs,wiki_docs,books_docs}.txt.xz
}
train() { # NAME MODEL RECIPE SEED, then settings
    local name=$1 model=$2 recipe=$3 seed=$4
    shift 4
    made "$name" && return
    cd "$work" && isotrope train --config "$recipe" --model "$model" --output "$work/$name" $(resumed "$name") "${dev[@]}" --seed "$seed" --no-final-table \
        --eval-steps "$((steps / 8 + 1))" --batch-size "$batch" --chunk-size "$chunk" "$@" && keep "$name"
}
cut() { done_already "$work/sources/spans.tsv" || "$python" "$here/cut_text.py" "$work" ${PAIRS:-}; } # 90 s, one core
mine() { # by the edition before: a hard negative for each row of the sources of search; the margin keeps likely answers out
    local name from
    for name in titles questions; do
        from=$(ls "$work/sources/$name".tsv*)
        done_already "$work/sources/$name-hard.tsv" || isotrope mine "$from" --model "${GUIDE:-builtin}" --margin 0.1 --last 30 --fill --output "$work/sources/$name-hard.tsv"
    done
}
tokens() { # on the CPU, next to `base`: what later stages read is tokenized once, and no GPU waits for it
    cd "$work" && "$python" "$here/token_caches.py" "${START:-builtin-base}" retromae=passages.txt distil=distil.txt promptbert=sources/sentences.txt
}
source_tokens() { cd "$work" && "$python" "$here/token_caches.py" "${START:-builtin-base}" --recipe "$here/contrast.yaml"; }
grow() { # more layers than the start has
    done_already "$work/grown/model" || "$python" "$here/weights.py" layers "$work/grown/model" "${START:-builtin-base}" "${LAYERS:-12}"
}
base() { # more passes over the text, by the clock; the log and checkpoints lie a third of the steps apart
    made base && return
    local steps=${BASE_STEPS:-9000} text=$work/packed
    [ -e "$work/packed" ] || text=$(corpora)
    isotrope pretrain $text --model "$(newest grown)" --output "$work/base" $(resumed base) "${dev[@]}" \
        --batch-size "${ROWS:-1024}" --max-seconds "${BASE_SECONDS:-300}" --steps "$steps" --learning-rate "${BASE_RATE:-6e-4}" --warmup-steps "$((steps / 30))" --weight-decay 0.05 \
        --mask-rate "${MASK_RATE:-0.3}" --adam-beta2 0.98 --average-decay 0.999 --save-steps "$((steps / 3))" && keep base
}
retromae() { # by the clock: 360 s are 3,300 steps, 1.7 passes
    made retromae && return
    isotrope train retromae "$work/passages.txt" --model "$(newest base)" --pooling mean --output "$work/retromae" $(resumed retromae) "${dev[@]}" --no-final-table \
        --max-seconds "${RETRO_SECONDS:-360}" --batch-size "${ROWS:-1024}" --max-length 128 --learning-rate 4e-4 --warmup-ratio 0.016 --weight-decay 0.05 \
        --adam-beta2 0.98 --average-decay 0.999 --eval-steps "${RETRO_EVAL:-1000}" --logging-steps 100 && keep retromae
}
contrast() { # by the clock, all seeds at once; their mean where there are several
    [ -e "$work/contrast.yaml" ] || cp "$here/contrast.yaml" "$work/contrast.yaml" # another may stand there
    local seed
    for seed in $seeds; do train "contrast-$seed" "$(newest base retromae)" "$work/contrast.yaml" "$seed" --max-seconds "${CONTRAST_SECONDS:-300}" >"$work/contrast-$seed.log" 2>&1 & done
    wait
    set -- "$work"/contrast-4?/model
    if [ $# -gt 1 ] && ! made average; then "$python" "$here/weights.py" average "$work/average/model" "$@" && keep average; fi
    ls -d "$work"/contrast-*/model
}
free() { # no label and no pair: a teacher from the raw base; it is at its best after some dozens of steps
    made free && return
    isotrope train promptbert "$work/sources/sentences.txt" --model "$(newest base)" --output "$work/free" $(resumed free) "${dev[@]}" --no-final-table \
        --max-steps "${FREE_STEPS:-100}" --eval-steps "${FREE_EVAL:-10}" --batch-size "$((batch / 4))" --max-length 48 --learning-rate 1e-4 && keep free
}
taught() { # NAME TEACHER TEXT, then settings: every second layer of the teacher, and its vectors
    local name=$1 teacher=$2 text=$3
    shift 3
    made "$name" && return
    [ -e "$work/halved-$name" ] || "$python" "$here/weights.py" layers "$work/halved-$name" "$teacher" "${STUDENT_LAYERS:-6}"
    isotrope train distil "$text" --model "$work/halved-$name" --teacher "$teacher" --output "$work/$name" $(resumed "$name") "${dev[@]}" --no-final-table \
        --max-seconds "${STUDENT_SECONDS:-300}" --batch-size "$batch" --max-length 128 --learning-rate 3e-4 --weight-decay 0.01 --adam-beta2 0.98 --eval-steps "${STUDENT_EVAL:-400}" "$@" && keep "$name"
}
students() { # by vectors, by neighbourhoods (ConGen), and the mean of both, as they start alike
    local teacher=${TEACHER:-$(newest $(for seed in $seeds; do echo "contrast-$seed"; done) average)}
    taught student "$teacher" "$work/distil.txt" >"$work/student.log" 2>&1 &
    taught student-queue "$teacher" "$work/distil.txt" --queue "${QUEUE:-65536}" >"$work/student-queue.log" 2>&1 &
    wait
    made student-mean || "$python" "$here/weights.py" average "$work/student-mean/model" "$work"/student{,-queue}/model && keep student-mean
}
free_student() { STUDENT_SECONDS=${FREE_SECONDS:-150} taught free-student "$work/free/model" "$work/passages.txt"; }
choose() { # the best student on what choices are made by
    chosen "$work"/student*/model
    "$python" "$here/choice.py" best "$work"/choice/student* | tee "$work/best"
}
polish() { # from the best student, a tenth of the rate
    steps=400 train polish "$work/$(cat "$work/best")/model" "$work/contrast.yaml" 42 --learning-rate 2e-5 --max-seconds "${POLISH_SECONDS:-60}"
}
soften() { # the mean of the best two, a fifth of the way back to where the teacher began: better on genres that no source has
    made softened && return
    local teachers_start
    teachers_start=$(newest base retromae)
    "$python" "$here/weights.py" average "$work/finished" "$work/student-mean/model" "$work/polish/model"
    "$python" "$here/weights.py" layers "$work/halved-start" "$teachers_start" "${STUDENT_LAYERS:-6}"
    "$python" "$here/weights.py" between "$work/softened/model" "${KEPT_SHARE:-0.8}" "$work/halved-start" "$work/finished" && keep softened
}
chosen() { # MODEL…: what choices are made by, and nothing that is reported: clean development pairs, held-out retrieval
    local model name
    mkdir -p "$work/choice"
    for model in "$@"; do
        name=$(basename "${model%/model}")
        [ -s "$work/choice/$name" ] || { "$python" "$here/choice.py" choose "$model" "$work/dev.tsv" "$work/held" >"$work/choice/.$name" && mv -f "$work/choice/.$name" "$work/choice/$name"; } &
    done
    wait
    for model in "$@"; do name=$(basename "${model%/model}") && echo "== $name" && cat "$work/choice/$name" 2>/dev/null || true; done
}
judge() { chosen $(ls -d "$work"/{base,retromae,contrast-*,average,free,free-student,student*,polish,softened}/model 2>/dev/null) | tee "$work/choice.txt"; }
table() { "$python" "$here/choice.py" goals "${MODEL:-$work/softened/model}" "$data"; } # once, of the chosen encoder
pack() {
    "$python" "$here/weights.py" pack "$work/builtin" "${MODEL:-$work/softened/model}"
    "$python" "$here/weights.py" pack-base "$work/builtin-base" "${BASE:-builtin-base}"
}
run_stages "$@"
