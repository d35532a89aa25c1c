#!/usr/bin/env bash
# The ablations of docs/notes/ablations.md, one command and one table each.
#     recipes/compare/ablations.sh WORK DATA [PARALLEL] [NAME…]      texts by recipes/compare/texts.py
set -euo pipefail
work=$1 data=$2 parallel=${3:-1} model=${MODEL:-builtin-base} complement=${COMPLEMENT:-builtin} seeds=${SEEDS:-3}
shift $(($# < 3 ? $# : 3))
texts=$work/compare

ablation() { # NAME METHODS, then the settings
    local name=$1 methods=$2
    shift 2
    isotrope compare sentences="$texts/text.txt" "$texts/triples.tsv" --methods "$methods" "$@" \
        --model "$model" --seeds "$seeds" --parallel "$parallel" --data-dir "$data" --eval-data "$data/sts/stsb.dev.tsv.gz" \
        --max-steps 200 --eval-steps 50 --learning-rate 1e-4 --max-length 64 \
        --output "$work/runs/$name" --markdown "$work/$name.md"
}

views() {
    ablation views none=simcse,crop-10=simcse,crop-30=simcse,delete-10=simcse,delete-30=simcse,synonym-10=simcse,mask-15=simcse,reorder-30=simcse,repeat-30=simcse \
        --batch-size 128 --set crop-10.second-edits=crop:0.9 --set crop-30.second-edits=crop:0.7 --set delete-10.second-edits=delete:0.1 \
        --set delete-30.second-edits=delete:0.3 --set synonym-10.second-edits=synonyms:0.1 --set mask-15.second-edits=mask:0.15 \
        --set reorder-30.second-edits=reorder:0.3 --set repeat-30.second-edits=repeat:0.3
}

dropout() {
    ablation dropout p-0=simcse,p-001=simcse,p-005=simcse,p-010=simcse,p-015=simcse,p-020=simcse,p-050=simcse,fixed=simcse \
        --batch-size 128 --set p-0.dropout=0 --set p-001.dropout=0.01 --set p-005.dropout=0.05 --set p-010.dropout=0.1 --set p-015.dropout=0.15 \
        --set p-020.dropout=0.2 --set p-050.dropout=0.5 --set fixed.fixed-mask=true
}

pooling() {
    ablation pooling cls=simcse,cls-no-head=simcse,cls-head-kept=simcse,mean=simcse,max=simcse,first_last=simcse,last2=simcse \
        --batch-size 128 --set cls.pooling=cls --set cls-no-head.pooling=cls --set cls-no-head.head=none --set cls-head-kept.pooling=cls \
        --set cls-head-kept.head=kept --set mean.pooling=mean --set max.pooling=max --set first_last.pooling=first_last --set last2.pooling=last2
}

batch() {
    ablation batch b-32=simcse,b-64=simcse,b-128=simcse,b-256=simcse,b-512=simcse \
        --set b-32.batch-size=32 --set b-64.batch-size=64 --set b-128.batch-size=128 --set b-256.batch-size=256 --set b-512.batch-size=512
}

temperature() {
    ablation temperature t-0001=simcse,t-001=simcse,t-005=simcse,t-01=simcse,t-02=simcse,t-1=simcse,learned=simcse \
        --batch-size 128 --set t-0001.temperature=0.001 --set t-001.temperature=0.01 --set t-005.temperature=0.05 --set t-01.temperature=0.1 \
        --set t-02.temperature=0.2 --set t-1.temperature=1 --set learned.learn-temperature=true
}

hard() {
    ablation hard alpha-0=simcse-supervised,alpha-05=simcse-supervised,alpha-1=simcse-supervised,alpha-15=simcse-supervised,alpha-2=simcse-supervised \
        --batch-size 128 --set alpha-0.hard-negative-weight=0 --set alpha-05.hard-negative-weight=0.5 --set alpha-1.hard-negative-weight=1 \
        --set alpha-15.hard-negative-weight=1.5 --set alpha-2.hard-negative-weight=2
    # Without hard negatives: the same anchors and positives as plain pairs. Alone, since triples are taken before pairs.
    local texts=$work/compare/plain
    mkdir -p "$texts"
    ln -sf ../text.txt "$texts/text.txt"
    cut -f1,2 "$work/compare/triples.tsv" >"$texts/triples.tsv"
    ablation hard-pairs pairs=simcse-supervised --batch-size 128
}

guided() {
    ablation guided base=sg,opt1=sg,opt2=sg,opt3=sg --batch-size 128 --pooling cls \
        --set opt1.variant=opt1 --set opt2.variant=opt2 --set opt3.variant=opt3
}

queue() {
    ablation queue q-256=moco,q-1024=moco,q-4096=moco,q-16384=moco,m-0=moco,m-09=moco,m-099=moco,m-0999=moco,m-09999=moco --batch-size 128 \
        --set q-256.queue=256 --set q-1024.queue=1024 --set q-4096.queue=4096 --set q-16384.queue=16384 \
        --set m-0.momentum=0 --set m-09.momentum=0.9 --set m-099.momentum=0.99 --set m-0999.momentum=0.999 --set m-09999.momentum=0.9999
}

debiased() {
    local own=()
    for row in phi-08 phi-09 phi-095 k-0 k-05 k-1 k-2 steps-0; do own+=(--set "$row.complement=$complement"); done
    ablation debiased phi-08=dclr,phi-09=dclr,phi-095=dclr,phi-none=dclr,k-0=dclr,k-05=dclr,k-1=dclr,k-2=dclr,steps-0=dclr --batch-size 128 \
        --set phi-08.threshold=0.8 --set phi-09.threshold=0.9 --set phi-095.threshold=0.95 --set phi-none.threshold=none \
        --set k-0.noise=0 --set k-05.noise=0.5 --set k-1.noise=1 --set k-2.noise=2 --set steps-0.ascent-steps=0 "${own[@]}"
}

neighbours() {
    ablation neighbours k-4=vascl,k-16=vascl,k-64=vascl,r-1=vascl,r-5=vascl,r-15=vascl,head-r-15=vascl --batch-size 128 \
        --set k-4.neighbours=4 --set k-16.neighbours=16 --set k-64.neighbours=64 --set k-4.radius=1 --set k-16.radius=1 --set k-64.radius=1 \
        --set r-1.radius=1 --set r-5.radius=5 --set r-15.radius=15 --set head-r-15.radius=15 --set head-r-15.neighbourhood-gradient=head
}

for name in ${@:-views dropout pooling batch temperature hard guided queue debiased neighbours}; do "$name"; done
