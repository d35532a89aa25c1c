#!/usr/bin/env bash
# The built-in encoders from the corpora: clean, pre-train, contrast, average, pack. About 15 minutes on an H200.
#     recipes/builtin/make.sh WORK DATA        DATA: corpora/, nli/, sts/, transfer/
set -euo pipefail
work=$1 data=$2 here=$(dirname "$0")
# As the shipped models were made: these files hold pairs of the tests. A new edition chooses by recipes/development.
dev=(--eval-data "$data/sts/stsb.dev.tsv.gz" --eval-data "$data/sts/sts12.train.tsv.gz" --eval-data "$data/sts/sick.train.tsv.gz")

corpora=$(ls "$data"/corpora/*.txt.xz | grep -v -e textbooks -e wikitext2) # textbooks: CC BY-NC-SA in part
isotrope leaks $corpora "$data/nli/triples.tsv.gz" --data-dir "$data" --output "$work/text"
python "$here/texts.py" sentences "$work"
python "$here/texts.py" supervised "$work" "$data"

isotrope pretrain "$work"/text/*.txt.xz --output "$work/base" --eval-data "$data/sts/stsb.dev.tsv.gz" \
    --batch-size 1024 --learning-rate 8e-4 --warmup-steps 800 --steps 7500 --weight-decay 0.05 --dropout 0.1
python "$here/weights.py" pack-base "$work/builtin-base" "$work/base/model"

for seed in 42 43 44; do
    isotrope train simcse "$work/sentences.txt" --model "$work/builtin-base" --pooling mean --output "$work/unsupervised-$seed" "${dev[@]}" --seed "$seed" --no-final-table \
        --batch-size 256 --max-length 64 --max-steps 200 --eval-steps 25 --learning-rate 1e-4 --dropout 0.05
    for text in triples-both permitted-captions; do
        steps=$([ $text = triples-both ] && echo 500 || echo 800)
        isotrope train simcse-supervised "$work/$text.tsv" --model "$work/unsupervised-$seed/model" --output "$work/$text-$seed" "${dev[@]}" --seed "$seed" --no-final-table \
            --batch-size 256 --max-length 64 --max-steps "$steps" --eval-steps 50 --learning-rate 2e-4
    done
done
python "$here/weights.py" average "$work/average" "$work"/permitted-captions-4?/model
python "$here/weights.py" pack "$work/builtin" "$work/average"

for model in builtin-base builtin unsupervised-{42,43,44}/model triples-both-{42,43,44}/model; do
    isotrope evaluate "$work/$model" --data-dir "$data"
done
