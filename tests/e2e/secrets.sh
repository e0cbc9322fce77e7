#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The secret of a job and every key that is derived from it: in no log, result,
# command line, environment, file of a process or core file. secretscan.py
# knows their forms.
. "$(dirname "$0")/../lib/e2e.sh"

keep=$scratch/keep
results=$scratch/results
nodes=local-0,local-1,local-2
mkdir -m 700 "$keep" "$results"
"$bin/gpulaunch" secret "$keep/job.secret"

# scan PLACE...: none of it is there.
scan()
{
    "$python" "$project/tests/lib/secretscan.py" "$keep/job.secret" \
        "$(cat "$keep/job")" "$nodes" "$@" >"$keep/found" 2>&1 ||
        fail "$(cat "$keep/found")"
}

# scan_processes: all of the run that are there now.
scan_processes()
{
    local places=() pid

    for pid in $(marked_pids); do
        places+=("pid:$pid")
    done
    [ ${#places[@]} -eq 0 ] || scan "${places[@]}"
}

scan_files()
{
    scan "$out" "$err" "$HOME" "$TMPDIR" "$XDG_STATE_HOME" \
        "$XDG_RUNTIME_DIR" "$results"
}

# Its job id is in the environment of a rank; then it waits.
cat >"$scratch/rank" <<SCRIPT
#!/bin/sh
env
echo "\$GPULAUNCH_JOB_ID" >"$keep/job.\$RANK"
mv "$keep/job.\$RANK" "$keep/job"
: >"$scratch/up.\$RANK"
until [ -e "$scratch/go" ]; do sleep 0.05; done
exit \$(cat "$scratch/go")
SCRIPT
chmod +x "$scratch/rank"

are_up()
{
    [ -e "$scratch/up.0" ] && [ -e "$scratch/up.1" ] && [ -e "$scratch/up.2" ]
}

start()
{
    rm -f "$scratch"/up.* "$scratch/go" "$keep/job"
    launch_behind --nodes 3 --secret-file "$keep/job.secret" "$@" \
        -- "$scratch/rank"
    within 60 "the ranks did not come up" are_up
}

# finish_with CODE: of every rank.
finish_with()
{
    echo "$1" >"$scratch/new"
    mv "$scratch/new" "$scratch/go"
    finish
    expect_status "$1"
    expect_no_process 5
}

it "while a job runs that tells all it can"
start -v --explain --log-dir "$results/logs" --result "$results/good.json"
# Front end, coordinator, two of each node, its undertaker and its rank.
[ "$(marked_pids | wc -l)" -ge 11 ] || fail "the programs were not seen"
scan_processes
grep -q ' files read' "$keep/found" || fail "nothing was read"

it "nor in what it has left"
finish_with 0
[ -s "$results/good.json" ] || fail "there is no result"
scan_files

it "nor in what a job leaves that failed, its report among it"
start --self-test off --log-dir "$results/logs" --result "$results/bad.json" \
    --json
scan_processes
finish_with 3
[ -s "$results/bad.json" ] || fail "there is no result"
scan_files

it "nor in what a job leaves whose agent and keeper were killed"
start --self-test off --log-dir "$results/logs"
kill -ABRT "$(agent_of local-1)"
kill -ABRT "$(keeper_of local-2)"
finish
expect_status 75
expect_no_process 5
scan_files

it "nor in what gpulaunch env prints"
run "$bin/gpulaunch" env --local --nodes 2 --rank 1 --explain \
    --secret-file "$keep/job.secret" -- true
expect_status 0
scan_files

# A file of a crash in this folder, of whatever name.
has_core()
{
    [ -n "$(find "$scratch/cores" -type f)" ]
}

it "a program that crashes leaves no core file, a rank that does its own"
mkdir "$scratch/cores"
cd "$scratch/cores"
ulimit -S -c "$(ulimit -H -c)"
sh -c 'kill -SEGV $$' 2>/dev/null || true
if [ "$slow" -gt 1 ]; then
    echo "not checked: a sanitizer keeps programs from dumping in its own way"
elif ! has_core; then
    echo "not checked: a crash leaves no core file in its folder here" \
        "(ulimit -c $(ulimit -c), $(cat /proc/sys/kernel/core_pattern))"
else
    rm -rf "${scratch:?}/cores"/*
    for victim in agent keeper coordinator front_end; do
        start --self-test off
        case $victim in
        agent) pid=$(agent_of local-1) ;;
        keeper) pid=$(keeper_of local-1) ;;
        coordinator) pid=$(pids_of gpulaunch-coordinator) ;;
        front_end) pid=$(pids_of gpulaunch) ;;
        esac
        kill -SEGV "$pid"
        within 20 "$victim did not crash" is_gone "$pid"
        echo 0 >"$scratch/go"
        finish
        expect_no_process 20
        ! has_core || fail "$victim: $(find "$scratch/cores" -type f)"
    done
    launch --self-test off --secret-file "$keep/job.secret" -- \
        sh -c 'echo "$GPULAUNCH_JOB_ID" >"$0"; kill -SEGV $$' "$keep/job"
    expect_status 139
    has_core || fail "the rank has lost its own core file"
    scan "$scratch/cores"
fi

done_stories
