#!/usr/bin/env bash
# The comparison of docs/notes/comparison.md: every method from builtin-base, three seeds, the seven STS tasks.
#     recipes/compare/table.sh WORK DATA [PARALLEL]      texts by recipes/compare/texts.py
set -euo pipefail
work=$1 data=$2 parallel=${3:-1} model=${MODEL:-builtin-base} complement=${COMPLEMENT:-auto} seeds=${SEEDS:-3}
texts=$work/compare
[ -f "$texts/paraphrases.tsv" ] || {
    awk 'NF && ++n <= 30000' "$texts/text.txt" > "$texts/thirty.txt"
    isotrope paraphrase "$texts/thirty.txt" --model "$model" --output "$texts/paraphrases.tsv" --share 0.15
}
isotrope compare sentences="$texts/text.txt" documents="$texts/text.txt" dialogues="$texts/dialogues.txt" \
    "$texts/linked.tsv" "$texts/triples.tsv" labelled-pairs="$texts/pairs.tsv" pairs="$texts/paraphrases.tsv" labelled="$texts/questions.tsv" \
    --methods simcse,simclr,moco,cert,sg,sg-opt,dclr,vascl,ease,quick-thoughts,declutr,dialogue-order,mlm,simcse-supervised,sbert,cosent,supcon \
    --set sg.pooling=cls --set sg-opt.pooling=cls --set dclr.complement="$complement" \
    --model "$model" --seeds "$seeds" --parallel "$parallel" --data-dir "$data" --eval-data "$data/sts/stsb.dev.tsv.gz" \
    --max-steps 200 --eval-steps 50 --batch-size 128 --learning-rate 1e-4 --max-length 64 \
    --output "$work/runs/methods" --markdown "$work/methods.md"
