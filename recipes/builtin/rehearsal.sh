#!/usr/bin/env bash
# The whole plan of lease.sh on a CPU, in miniature, from the texts that `edition.sh WORK DATA text pairs` wrote: some minutes.
#     recipes/builtin/rehearsal.sh WORK SMALL     SMALL: a new folder; SMALL/there is the lent machine, SMALL/back what came home
# PYTHON names the interpreter: one with the packages of the lent machine shows what is missing there.
set -euo pipefail
work=$(realpath "$1") small=$(realpath -m "$2") here=$(realpath "$(dirname "$0")") lines=${LINES_KEPT:-1500}
export PYTHON=${PYTHON:-python3} PYTHONPATH="$here/../../src" ISOTROPE_CACHE="$small/cache"
export BASE_SECONDS=6 BASE_STEPS=12 RETRO_SECONDS=6 RETRO_EVAL=4 CONTRAST_SECONDS=12 POLISH_SECONDS=8 STUDENT_SECONDS=12 FREE_SECONDS=8 STUDENT_EVAL=4 FREE_STEPS=4 FREE_EVAL=2
export STEPS=16 SEEDS=${SEEDS:-42} BATCH=48 CHUNK=16 ROWS=16 PAIRS=600 LIMIT_MIB=0.3 LAYERS=8 QUEUE=256 PIECE=200000
few() { (xz -dc "$1" 2>/dev/null || gzip -dc "$1") | head -n "$2" || true; } # the pipe is cut before its end

mkdir -p "$small/home/text" "$small/home/data"
for file in "$work"/text/*.txt.xz; do few "$file" "$lines" | xz >"$small/home/text/$(basename "$file")"; done
for file in "$work"/text/*.tsv.*; do few "$file" "$lines" | case $file in *.xz) xz ;; *) gzip ;; esac >"$small/home/text/$(basename "$file")"; done
head -n 200 "$work/dev.tsv" >"$small/home/dev.tsv"
"$PYTHON" "$here/pair_sources.py" "$small/home"
mkdir -p "$small/home/held/pairs" && for file in "$work"/held/pairs/*; do head -n 60 "$file" >"$small/home/held/pairs/$(basename "$file")"; done
few "$work/sources/triples.tsv.xz" "$lines" | xz >"$small/home/sources/triples.tsv.xz"
cd "$small/home" && "$PYTHON" "$here/carried.py" parts "$small/home" "$LIMIT_MIB" dev.tsv held/retrieval/* held/pairs/* sources/*.tsv.xz text/*.txt.xz

mkdir -p "$small/there"
sed -e 's/batch_size: [0-9]*/batch_size: 24/' -e 's/held_out: 512/held_out: 40/' "$here/contrast.yaml" >"$small/there/contrast.yaml" # the batches of a source win over BATCH
"$here/edition.sh" "$small/home" "$small/home/data" pack_text
parts=($(ls -d "$small"/home/parts/* | sort -V)) there="$small/there" back="$small/back"
mkdir -p "$small/home/first" && mv "$small/home/pieces" "$small/home/first/"
PACKED=1 "$here/lease.sh" start "$there" "$small/home/first"
"$here/lease.sh" beside "$there" besides echo "a command of its own"
"$here/lease.sh" bring "$there" "${parts[@]:0:2}"
LAST=1 "$here/lease.sh" bring "$there" "${parts[@]:2}"
for ((call = 1; call <= 12; call++)); do # as many as there are models, and one that finds nothing new
    mkdir -p "$small/call-$call" "$back"
    "$here/lease.sh" wait "$there" "${WAIT:-900}"
    "$here/lease.sh" fetch "$there" "$small/call-$call"
    echo "call $call: $(ls "$small/call-$call" | wc -l) files, $(du -sk "$small/call-$call" | cut -f1) KiB"
    cp "$small/call-$call"/* "$back/"
    [ ! -e "$there/log/ended" ] || [ "$(ls "$there/out" | grep -c sums)" -gt "$(ls "$there/fetched" | grep -c sums)" ] || break
done
for sums in "$back"/*.sums; do
    name=$(basename "$sums" .sums)
    "$PYTHON" "$here/carried.py" join "$sums" "$back/$name"
    "$PYTHON" - "$there/$name/model" "$back/$name" <<'PY'
import sys
import isotrope, torch
there, here = (isotrope.load(folder, device="cpu").state_dict() for folder in sys.argv[1:])
assert all(torch.equal(there[name].half().float(), here[name]) for name in there if there[name].is_floating_point())
print(sys.argv[2], "came back bit for bit in half precision")
PY
done
BASE="$back/base" MODEL="$back/softened" "$here/edition.sh" "$small" "$small/home/data" pack
if grep FAILED "$there/log/plan"; then exit 1; fi
echo "rehearsed: $(ls "$back"/*.sums | wc -l) models"
