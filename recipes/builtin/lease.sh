#!/usr/bin/env bash
# Half an hour on a lent GPU: the stages of third.sh run in a session of their own, while calls bring data and fetch weights.
#     lease.sh start WORK PART…      first call: take these parts, start the plan, return
#     lease.sh bring WORK PART…      next calls: take further parts; the last one with LAST=1
#     lease.sh wait WORK SECONDS     keep the machine, print what the plan says, end early when a new model is there
#     lease.sh fetch WORK OUT        copy what was not fetched yet, at most 7 files, and the log
#
# | stage    | began | seconds | waits for     | what it gave                                                        |
# | start    |     0 |    40   | the machine   |                                                                     |
# | pilot    |    48 |   348   | part 1        | three settings; what they taught stands in third.yaml               |
# | cut      |    95 |    41   | the last part | 2 million passages, next to pilot, on the CPU                       |
# | retromae |   136 |   474   | cut           | restored perplexity 22.5; 114 s of it are tokens and evaluations    |
# | contrast |   610 |   829   | retromae      | three seeds at once, 1,850 to 1,880 steps                           |
# | average  |  1440 |    23   | contrast      | at least the best seed                                              |
# | mine     |  1463 |    65   | average       | next to judge                                                       |
# | last     |  1528 |   120   | mine          | mined negatives: questions + 0.6; and a run without labels          |
# | end      |  1684 |         |               |                                                                     |
set -euo pipefail
verb=$1 work=$2 here=$(realpath "$(dirname "$0")")
shift 2
mkdir -p "$work/log" "$work/fetched"
export PYTHONPATH=src OMP_NUM_THREADS=1 TOKENIZERS_PARALLELISM=true HF_HUB_OFFLINE=1 PYTHONUNBUFFERED=1 PYTHONWARNINGS=ignore
export PYTHON=${PYTHON:-python3} PYTHONPATH="$here/../../src" XDG_CACHE_HOME="$work/cache" ISOTROPE_CACHE="$work/cache/isotrope" NVIDIA_TF32_OVERRIDE=1

taken() { "$PYTHON" "$here/carried.py" take "$work" "$@"; }
stages() { "$here/third.sh" "$work" "$work/data" "$@" >>"$work/log/$1.log" 2>&1 && echo "$(date +%T) $1 done" >>"$work/log/plan" || echo "$(date +%T) $1 FAILED" >>"$work/log/plan"; }
shared() { # several processes share the GPU, where the driver's service for it works
    nvidia-cuda-mps-control -d >/dev/null 2>&1 || return 0
    timeout 60 "$PYTHON" -c 'import torch; torch.ones(2, device="cuda").sum().item()' 2>/dev/null && echo "shared by MPS" && return
    echo quit | nvidia-cuda-mps-control >/dev/null 2>&1 || true
}
plan() {
    stages pilot &
    until [ -e "$work/complete" ]; do sleep 1; done
    stages cut
    for stage in ${PLAN:-retromae contrast average}; do stages "$stage"; done
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
    setsid nohup "$here/lease.sh" plan "$work" >"$work/log/out" 2>&1 </dev/null &
    ;;
plan) plan ;;
bring)
    taken "$@"
    [ -z "${LAST:-}" ] || touch "$work/complete"
    ;;
wait)
    before=$(ls "$work/out" 2>/dev/null | wc -l)
    for ((second = 0; second < $1; second++)); do
        sleep 1
        [ "$(ls "$work/out" 2>/dev/null | grep -c sums)" -le "$(ls "$work/fetched" | grep -c sums)" ] && [ ! -e "$work/log/ended" ] || break
    done
    echo "$before files before, $(ls "$work/out" 2>/dev/null | wc -l) now"
    ;;
fetch)
    count=0
    for name in retromae average hard unlabelled distilled contrast-{42,43,44}; do
        sums="$work/out/$name.sums"
        [ -e "$work/fetched/$name.sums" ] || [ ! -e "$sums" ] && continue
        files=$(ls "$work/out/$name".*)
        [ $((count + $(wc -w <<<"$files"))) -le 7 ] || break
        cp $files "$1/" && touch "$work/fetched/$name.sums"
        count=$((count + $(wc -w <<<"$files")))
    done
    tail -n 40 "$work"/log/*.log "$work"/*.log >"$1/log.txt" 2>/dev/null || true
    ;;
esac
cat "$work/log/plan" 2>/dev/null || true
tail -qn 2 "$work"/log/*.log 2>/dev/null || true
