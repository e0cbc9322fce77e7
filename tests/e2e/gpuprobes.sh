#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The agents' part of a self-test on GPUs, on the doubles: two nodes with two
# devices each. Probes die, hang and are stopped; none of them is left, their
# logs say what happened, and the command finds the memory of the devices free.
. "$(dirname "$0")/../lib/e2e.sh"

doubles=$bin/../tests/doubles
[ -e "$doubles/libnccl.so.2" ] || skip "no doubles of the GPU libraries here"
export LD_LIBRARY_PATH=$doubles
export GPULAUNCH_DOUBLE_SCENARIO=$scratch/scenario
logs=$scratch/logs

# scenario LINE...: two devices on every node, and these lines.
scenario()
{
    printf '%s\n' 'node local-* gpus 2' "$@" >"$scratch/next"
    mv "$scratch/next" "$GPULAUNCH_DOUBLE_SCENARIO"
}

gpu_launch()
{
    launch --nodes 2 --backend nccl --log-dir "$logs" "$@"
}

gpu_launch_behind()
{
    launch_behind --nodes 2 --backend nccl --log-dir "$logs" "$@"
}

# Files of the self-test whose name matches.
self_test_files()
{
    find "$logs" -path '*/self-test/*' -name "$1"
}

# Eight processes of the worker: two keepers, two agents and four probes.
probes_are_up()
{
    [ "$(pids_of gpulaunch-worker | wc -l)" -eq 8 ]
}

it "four devices pass: the command runs; NCCL had a log for each rank"
scenario
gpu_launch -q -- true
expect_status 0
expect_nothing_left
[ "$(self_test_files 'rank-*.nccl' | wc -l)" -eq 4 ] ||
    fail "NCCL has no log of its own for each rank"

rm -rf "$logs"

it "without --log-dir a success leaves no log of the self-test"
launch --nodes 2 --backend nccl -q -- true
expect_status 0
expect_nothing_left

it "without NVML the memory cannot be seen: one line for all nodes says so"
scenario 'node local-* nvml-init 9'
launch --nodes 2 --backend nccl -- true
expect_status 0
[ "$(grep -c 'memory in use cannot be seen' "$err")" -eq 1 ] ||
    fail "it is not said once"
expect_has "$err" 'note: 4 devices of local-\[0-1\]: memory in use cannot be seen: whether it is free again after the self-test is not known$'
expect_nothing_left

it "NCCL may log as much as it likes: 1 MiB of it is kept, and nothing waits"
rm -rf "$logs"
scenario 'node local-1 debug 5MiB'
gpu_launch -q -- true
expect_status 0
for file in $(self_test_files 'rank-[23].nccl'); do
    [ "$(stat -c %s "$file")" -eq 1048576 ] || fail "$file is not 1 MiB"
    head -n 1 "$file" | grep -q '^NCCL double' || fail "$file has no beginning"
done
[ "$(self_test_files 'rank-[23].nccl' | wc -l)" -eq 2 ] || fail "no logs"
rm -rf "$logs"

it "what NCCL logged before its process crashed is there"
scenario 'fault rank 1 signal SEGV at init'
gpu_launch -q -- true
expect_status 20
grep -q '^NCCL double' "$(self_test_files rank-1.nccl)" || fail "no log"
rm -rf "$logs"

it "a library for another machine is passed over, as ld.so does, and named"
mkdir "$scratch/foreign"
cp "$doubles/libnccl.so.2" "$scratch/foreign"
printf '\x08' | dd of="$scratch/foreign/libnccl.so.2" bs=1 seek=18 conv=notrunc \
    status=none
scenario
LD_LIBRARY_PATH=$scratch/foreign:$doubles launch --nodes 2 --backend nccl \
    --result "$scratch/foreign.json" -- true
expect_status 0
expect_has "$err" 'doubles/libnccl.*; passed over: /.*/foreign/libnccl.so.2 \(a library for another machine\)\)'
expect_nothing_left

# helpers_are_gone: there were some, and none runs any more.
helpers_are_gone()
{
    local pid
    [ -s "$scratch/helpers" ] || return 1
    while read -r pid; do
        [ ! -e "/proc/$pid" ] || return 1
    done <"$scratch/helpers"
}

if [ "$slow" -eq 1 ]; then # a sanitizer wants to be the first library
    it "a helper that a library left holds nothing up and does not stay"
    library=$(realpath "$bin/../tests/libtests_helper.so")
    for fault in '' 'fault rank 2 signal SEGV at allreduce'; do
        rm -f "$scratch/helpers"
        scenario "$fault"
        TESTS_HELPER_PIDS=$scratch/helpers LD_PRELOAD=$library \
            launch --nodes 2 --backend nccl --self-test-timeout 60s -q -- true
        expect_status $((${#fault} ? 20 : 0))
        within 5 "a helper is left" helpers_are_gone
    done
    forget_logs
fi

it "a probe killed by a signal is named with rank, node and device"
scenario 'fault rank 2 signal SEGV at allreduce'
gpu_launch -- false
expect_status 20
expect_last_line 'rank 2 .*local-1, device GPU-.*ended by signal 11 \(SIGSEGV\)'
expect_nothing_left

it "a scout that crashes in a library is told, not a crash of the job"
scenario 'fault node local-1 signal BUS at facts'
gpu_launch -- false
expect_status 20
expect_last_line 'local-1.*ended by signal 7 \(SIGBUS\)'
expect_nothing_left

it "what a library writes goes to the log, and its last line to the user"
rm -rf "$logs"
scenario 'nonsense'
gpu_launch -- false
expect_status 20
expect_last_line 'NCCL cannot be used on local-\[0-1\]: the process .*ended by signal 6 \(SIGABRT\); the last that it wrote is .*/scout-\*\.log$'
[ -s "$(self_test_files scout-0.log)" ] || fail "the scout has no log"
expect_nothing_left

it "SIGINT while the communicator is set up: probes abort and end at once"
scenario 'fault rank 3 never-arrives'
gpu_launch_behind -- false
within 20 "the probes did not come up" probes_are_up
kill -INT "$front_end"
finish
expect_status 130
expect_nothing_left

# A probe that is suspended hears neither Stop nor anything else.
a_probe_is_suspended()
{
    local pid

    for pid in $(pids_of gpulaunch-worker); do
        grep -q '^State:.T' "/proc/$pid/status" 2>/dev/null && return
    done
    return 1
}

it "SIGINT: a probe that does not hear is killed when an abort had its time"
scenario 'fault rank 2 signal STOP at allreduce'
gpu_launch_behind -- false
within 20 "no probe came to its first all-reduce" a_probe_is_suspended
start=$(now_ms)
kill -INT "$front_end"
finish
took_ms=$(($(now_ms) - start))
expect_status 130
expect_nothing_left
expect_within_ms 16000
[ "$took_ms" -ge 11000 ] || fail "the others had no time for their abort"

it "a second SIGINT: it is killed at once"
gpu_launch_behind -- false
within 20 "no probe came to its first all-reduce" a_probe_is_suspended
start=$(now_ms)
kill -INT "$front_end"
sleep 0.2
kill -INT "$front_end"
finish
took_ms=$(($(now_ms) - start))
expect_status 130
expect_nothing_left
expect_within_ms 5000

it "a keeper is killed: the probes end with it, and so do the others"
scenario 'fault rank 3 never-arrives'
gpu_launch_behind -- false
within 20 "the probes did not come up" probes_are_up
kill -KILL "$(keeper_of local-1)"
finish
expect_status 41
expect_last_line 'local-1'
expect_no_process 10

# The probes are kept waiting until somebody else has taken memory.
it "memory that is in use after the self-test is waited for by the command"
scenario 'fault rank 0 late 2s'
gpu_launch_behind -q -- touch "$scratch/started"
within 20 "the probes did not come up" probes_are_up
scenario 'node local-* used 4GiB'
probes_are_gone()
{
    [ "$(pids_of gpulaunch-worker | wc -l)" -le 5 ]
}
within 20 "the probes did not end" probes_are_gone
sleep 1
[ ! -e "$scratch/started" ] || fail "the command did not wait for the memory"
scenario
finish
expect_status 0
[ -e "$scratch/started" ] || fail "the command was not started"
expect_nothing_left

done_stories
