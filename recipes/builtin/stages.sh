# What the recipes of this folder share; sourced by them, once `python` is set. Their stages are functions.
isotrope() { "$python" -m isotrope "$@"; }
done_already() { [ -e "$1" ] && echo "$(basename "$1") exists, skipped"; }
run_stages() {
    for stage in "$@"; do
        began=$SECONDS
        echo "$(date +%T) begin $stage"
        "$stage"
        echo "$(date +%T) end $stage, $((SECONDS - began)) s"
    done
}
