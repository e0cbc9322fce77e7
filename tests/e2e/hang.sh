#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Training that makes no step: the report names the rank that is behind and
# what it does, it is told when training goes on, and the job ends by it only
# if that was asked for.
. "$(dirname "$0")/../lib/e2e.sh"

# Steps that all ranks make together, like those of a collective: a rank begins
# a step once all have begun the one before. Rank 2 hangs before its tenth, as
# the first argument says, until something comes through the FIFO.
cat >"$scratch/train.py" <<'END'
import os, signal, sys, time

how, folder = sys.argv[1:3]
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
beat = int(os.environ["GPULAUNCH_BEAT_FD"])
fifo = os.open(os.path.join(folder, "fifo"), os.O_RDWR)
for step in range(1, 21):
    if rank == 2 and step == 10:
        with open(os.path.join(folder, "pid"), "w") as file:
            file.write(str(os.getpid()))
        if how == "read":
            os.read(fifo, 1)
        elif how == "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
    os.write(beat, b"%d\n" % step)
    open(os.path.join(folder, "%d.%d" % (step, rank)), "w").close()
    for other in range(world):
        while not os.path.exists(os.path.join(folder, "%d.%d" % (step, other))):
            time.sleep(0.01)
END

doubles=$bin/../tests/doubles

# make_folder: for the steps of one job.
make_folder()
{
    folder=$scratch/steps.$stories
    mkdir "$folder"
    mkfifo "$folder/fifo"
}

# start_training HOW [OPTION...]: four ranks on two nodes, limit 2 s.
start_training()
{
    local how=$1
    shift

    make_folder
    launch_behind --nodes 2 --per-node 2 --self-test off --hang-timeout 2s \
        "$@" -- "$python" "$scratch/train.py" "$how" "$folder"
}

says()
{
    grep -qE "$1" "$err"
}

it "a rank that reads what does not come is named, and then goes on"
start_training read --result "$scratch/result.json"
within 30 "no report of the hang" says 'training hangs'
echo x >"$folder/fifo"
within 30 "nothing says that training goes on" says 'training goes on after'
finish
expect_status 0
expect_has "$err" \
    'limit 2 s\); behind: rank 2 \(node local-1\) after step 9; ranks 0-1,3'
expect_has "$err" '^gpulaunch:   rank 2: sleeping \(S\), 0 % CPU, 1 thread'
# Some kernels do not tell where a process waits.
if says 'rank 2: .* in '; then
    expect_has "$err" 'rank 2: sleeping .*, in .*read'
fi
expect_json "$scratch/result.json" \
    '[(s["suspects"], s["node"]) for s in r["stalls"]] == [("2", "local-1")]'
expect_json "$scratch/result.json" \
    'r["stalls"][0]["resumed_at_seconds"] > r["stalls"][0]["at_seconds"]'
expect_nothing_left

it "a rank that is stopped by a signal is named so"
start_training stop
within 30 "no report of the hang" says 'rank 2: stopped by a signal \(T\)'
kill -CONT "$(cat "$folder/pid")"
within 30 "nothing says that training goes on" says 'training goes on after'
finish
expect_status 0
expect_nothing_left

it "--on-hang stop ends the job with 75, within the grace"
start_training stop --on-hang stop --grace 1s --result "$scratch/result.json"
within 30 "no report of the hang" says 'training hangs'
start=$(now_ms)
finish
took_ms=$(($(now_ms) - start))
expect_within_ms 10000
expect_status 75
expect_last_line 'gpulaunch: training hung \(--on-hang stop\); behind was rank 2 \(node local-1\) after step 9$'
[ "$(grep -c 'training hangs' "$err")" -eq 1 ] || fail "the report is repeated"
expect_json "$scratch/result.json" \
    '(r["reason"], r["node"]) == ("hang", "local-1")'
forget_logs
expect_nothing_left

# on_gpus SCENARIO HOW [OPTION...]: the same training, each rank with a GPU of
# its own as the double of NVML has it.
on_gpus()
{
    printf 'node * gpus 4 utilization 100 power 120 power-limit 700\n%b\n' "$1" \
        >"$scratch/scenario"
    shift
    export GPULAUNCH_DOUBLE_SCENARIO=$scratch/scenario
    export LD_LIBRARY_PATH=$doubles CUDA_VISIBLE_DEVICES=0,1,2,3
    start_training "$@"
    unset GPULAUNCH_DOUBLE_SCENARIO LD_LIBRARY_PATH CUDA_VISIBLE_DEVICES
}

spins='spins \(busy at low power, as while NCCL waits for another rank\)'

it "GPUs that wait for the one that does nothing are told from it"
on_gpus 'gpu local-1 2 utilization 0' stop --devices rank \
    --result "$scratch/result.json"
within 30 "no report of the hang" says 'rank 2: stopped by a signal \(T\)'
expect_has "$err" 'rank 2: .*; SIMULATED: its GPU is idle$'
expect_has "$err" "ranks? [013].*; SIMULATED: its GPU $spins\$"
kill -CONT "$(cat "$folder/pid")"
within 30 "nothing says that training goes on" says 'training goes on after'
finish
expect_status 0
expect_json "$scratch/result.json" \
    '"its GPU is idle" in r["stalls"][0]["text"] and
    "its GPU spins" in r["stalls"][0]["text"]'
expect_nothing_left

it "an NVML that hangs holds the report up for 5 s, and is said"
on_gpus 'fault node local-1 hang facts' stop
within 40 "nothing says that NVML hangs" says \
    'rank 2: .*; SIMULATED: GPU state unknown: NVML did not answer within 5 s$'
expect_has "$err" 'ranks? [01].*; SIMULATED: the 2 GPUs that it may use spin'
kill -CONT "$(cat "$folder/pid")"
finish
expect_status 0
expect_nothing_left

it "without beats, silence is a hang only where a limit was given"
launch --nodes 1 --per-node 2 --self-test off -- \
    sh -c '[ -n "$GPULAUNCH_BEAT_FD" ] && sleep 4'
expect_status 0
expect_empty "$err"
launch --nodes 1 --per-node 2 --self-test off --hang-timeout 1s -- \
    sh -c '[ "$RANK" = 0 ] && sleep 12 || for i in 1 2 3 4 5 6 7 8 9 10 11 12 \
        13 14 15 16 17 18 19 20; do echo "$i" && sleep .6; done'
expect_status 0
expect_has "$err" 'training hangs: no output for .* \(limit 1 s\); nothing from rank 0 \(node local-0\); 1 other goes on'
expect_nothing_left

it "--hang-timeout off: nothing is watched, and there is no pipe"
launch --nodes 1 --self-test off --hang-timeout off -- \
    sh -c '[ -z "$GPULAUNCH_BEAT_FD" ] && ! [ -e /proc/self/fd/3 ] && sleep 3'
expect_status 0
expect_empty "$err"

it "a rank that beats much faster than it is read loses beats, not time"
launch --nodes 1 --self-test off -- "$python" -c '
import os
fd = int(os.environ["GPULAUNCH_BEAT_FD"])
lost = 0
for i in range(300000):
    try:
        os.write(fd, b"\n")
    except BlockingIOError:
        lost += 1
os.close(fd)'
expect_status 0
expect_nothing_left

done_stories
