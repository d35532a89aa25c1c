#!/usr/bin/env bash
# Half an hour on a lent GPU: the stages of third.sh run in a session of their own, while calls bring data and fetch weights.
#     lease.sh start WORK PART…              first call: take these parts, start the plan, return
#     lease.sh bring WORK PART…              next calls: take further parts; the last one with LAST=1
#     lease.sh beside WORK NAME COMMAND…     a command in a session of its own; its output goes to WORK/log/NAME.log
#     lease.sh wait WORK SECONDS             keep the machine, print what the plan says, end early when a new model is there
#     lease.sh fetch WORK OUT                copy the next model that was not fetched yet (4 files of 33 MiB in all), and the logs
# FIRST, PLAN and THEN name the stages: FIRST while data are brought, PLAN behind it (`cut` and `tokens` run next to its
# first stage, on the CPU), THEN next to the first judging. loan.md has the calls as they are typed, and the times.
set -euo pipefail
verb=$1 work=$(realpath -m "$2") here=$(realpath "$(dirname "$0")")
shift 2
mkdir -p "$work/log" "$work/fetched"
export OMP_NUM_THREADS=1 TOKENIZERS_PARALLELISM=true HF_HUB_OFFLINE=1 PYTHONUNBUFFERED=1 PYTHONWARNINGS=ignore
export PYTHON=${PYTHON:-python3} PYTHONPATH="$here/../../src" XDG_CACHE_HOME="$work/cache" ISOTROPE_CACHE="$work/cache/isotrope" NVIDIA_TF32_OVERRIDE=1

taken() { "$PYTHON" "$here/carried.py" take "$work" "$@"; }
stages() { "$here/third.sh" "$work" "$work/data" "$@" >>"$work/log/$1.log" 2>&1 && echo "$(date +%T) $1 done" >>"$work/log/plan" || echo "$(date +%T) $1 FAILED" >>"$work/log/plan"; }
shared() { # several processes share the GPU, where the driver's service for it works
    nvidia-cuda-mps-control -d >/dev/null 2>&1 || return 0
    timeout 60 "$PYTHON" -c 'import torch; torch.ones(2, device="cuda").sum().item()' 2>/dev/null && echo "shared by MPS" && return
    echo quit | nvidia-cuda-mps-control >/dev/null 2>&1 || true
}
plan() {
    local stage order=(${PLAN:-base retromae contrast average}) prepared
    for stage in ${FIRST:-}; do stages "$stage"; done &
    until [ -e "$work/complete" ]; do sleep 1; done
    { stages cut && stages tokens; } &
    prepared=$!
    if [ "${order[0]}" = base ]; then # it reads the text itself
        stages base
        order=("${order[@]:1}")
    fi
    wait "$prepared"
    for stage in "${order[@]}"; do stages "$stage"; done
    stages judge &
    for stage in ${THEN:-mine last}; do stages "$stage"; done
    wait
    stages judge
    touch "$work/log/ended"
}
case $verb in
start)
    taken "$@"
    [ -z "${LAST:-}" ] || touch "$work/complete"
    shared
    mkdir -p "$work/code" && cp -r "$here/../../src" "$here/../../recipes" "$work/code/" # a later call may bring other code
    setsid nohup "$work/code/recipes/builtin/lease.sh" plan "$work" >"$work/log/out" 2>&1 </dev/null &
    ;;
plan) plan ;;
bring)
    taken "$@"
    [ -z "${LAST:-}" ] || touch "$work/complete"
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
    for name in base retromae average hard unlabelled distilled contrast-{42,43,44} pilot{,-rate,-labels}; do
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
