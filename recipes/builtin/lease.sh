#!/usr/bin/env bash
# Half an hour on a lent GPU: the stages of edition.sh run in a session of their own, while calls bring data and fetch weights.
#     lease.sh start WORK PART…              first call: take these parts, start the plan, return
#     lease.sh bring WORK PART…              next calls: take further parts; the last one with LAST=1
#     lease.sh beside WORK NAME COMMAND…     a command in a session of its own; its output goes to WORK/log/NAME.log
#     lease.sh wait WORK SECONDS             keep the machine, print what the plan says, end early when a new model is there
#     lease.sh fetch WORK OUT                copy the next model that was not fetched yet (4 files of 33 MiB in all), and the logs
# PACKED=1 says that all pieces of the packed rows are there: FIRST begins. LAST=1 says that everything is: PREPARE begins, next to it.
# PLAN goes on with what both made. All three name stages; those joined by + run at once. loan.md has the calls as they are typed.
set -euo pipefail
verb=$1 work=$(realpath -m "$2") here=$(realpath "$(dirname "$0")")
shift 2
mkdir -p "$work/log" "$work/fetched"
export OMP_NUM_THREADS=1 TOKENIZERS_PARALLELISM=true HF_HUB_OFFLINE=1 PYTHONUNBUFFERED=1 PYTHONWARNINGS=ignore
export PYTHON=${PYTHON:-python3} PYTHONPATH="$here/../../src" XDG_CACHE_HOME="$work/cache" ISOTROPE_CACHE="$work/cache/isotrope" NVIDIA_TF32_OVERRIDE=1

taken() { "$PYTHON" "$here/carried.py" take "$work" "$@"; }
stages() { "$here/edition.sh" "$work" "$work/data" "$@" >>"$work/log/$1.log" 2>&1 && echo "$(date +%T) $1 done" >>"$work/log/plan" || echo "$(date +%T) $1 FAILED" >>"$work/log/plan"; }
shared() { # several processes share the GPU, where the driver's service for it works
    nvidia-cuda-mps-control -d >/dev/null 2>&1 || return 0
    timeout 60 "$PYTHON" -c 'import torch; torch.ones(2, device="cuda").sum().item()' 2>/dev/null && echo "shared by MPS" && return
    echo quit | nvidia-cuda-mps-control >/dev/null 2>&1 || true
}
arrived() { until [ -e "$work/$1" ]; do sleep 0.5; done; }
steps() { # one behind another; those joined by + at once
    local step stage running
    for step in "$@"; do
        running=()
        for stage in ${step//+/ }; do
            stages "$stage" &
            running+=($!)
        done
        wait "${running[@]}"
    done
}
plan() {
    { arrived packed-complete && steps ${FIRST:-unpack grow base}; } &
    local first=$!
    arrived complete
    steps ${PREPARE:-cut mine+tokens source_tokens}
    wait "$first"
    steps ${PLAN:-retromae contrast+free students+free_student choose polish soften judge}
    touch "$work/log/ended"
}
marked() { # what the call that brings them says
    [ -z "${PACKED:-}" ] || touch "$work/packed-complete"
    [ -z "${LAST:-}" ] || touch "$work/complete"
}
case $verb in
start)
    taken "$@"
    marked
    shared
    mkdir -p "$work/code" && cp -r "$here/../../src" "$here/../../recipes" "$work/code/" # a later call may bring other code
    setsid nohup "$work/code/recipes/builtin/lease.sh" plan "$work" >"$work/log/out" 2>&1 </dev/null &
    ;;
plan) plan ;;
bring)
    taken "$@"
    marked
    ;;
beside)
    name=$1
    shift
    setsid nohup "$@" >"$work/log/$name.log" 2>&1 </dev/null &
    ;;
wait)
    for ((second = 0; second < $1; second++)); do
        sleep 1
        [ "$(ls "$work/out" 2>/dev/null | grep -c sums)" -le "$(ls "$work/fetched" | grep -c sums)" ] && [ ! -e "$work/log/ended" ] || break
    done
    echo "waited $second s; $(ls "$work/out" 2>/dev/null | grep -c sums || true) models, $(ls "$work/fetched" | grep -c sums || true) fetched"
    ;;
fetch)
    for name in base retromae contrast-{42,43,44} average free student{,-queue,-mean} free-student polish softened; do
        if [ -e "$work/out/$name.sums" ] && [ ! -e "$work/fetched/$name.sums" ]; then
            cp "$work/out/$name".* "$1/" && touch "$work/fetched/$name.sums"
            echo "fetched $name"
            break
        fi
    done
    tail -n 60 "$work"/log/*.log "$work"/*.log "$work/choice.txt" >"$1/log.txt" 2>/dev/null || true
    ;;
esac
cat "$work/log/plan" 2>/dev/null || true
tail -qn 2 "$work"/log/*.log 2>/dev/null || true
