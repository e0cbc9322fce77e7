#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The self-test on GPUs: without any, and on doubles of the libraries, with
# every fault that they know.
. "$(dirname "$0")/../lib/e2e.sh"

doubles=$bin/../tests/doubles
uuid=GPU-00000000-0000-0000-0000-000000000005

# on_doubles SCENARIO ARGUMENT...: 4 nodes of 2 devices, and what SCENARIO
# says besides; messages are small unless the arguments say otherwise. Rank 5
# has the second device of local-2, with the UUID above.
on_doubles()
{
    printf '%b\n' "node local-* gpus 2" "gpu local-2 1 uuid $uuid" "$1" \
        >"$scratch/scenario"
    shift
    rm -f "$scratch/started"
    GPULAUNCH_DOUBLE_SCENARIO=$scratch/scenario LD_LIBRARY_PATH=$doubles \
        "${how:-run}" "$bin/gpulaunch" --local --nodes 4 --backend nccl \
        --minbytes "${least:-8}" --maxbytes "${most:-64K}" "$@" -- touch "$scratch/started"
}

on_doubles_behind()
{
    how=run_behind on_doubles "$@"
}

expect_not_started()
{
    [ ! -e "$scratch/started" ] || fail "the command was started"
}

# ---- without a GPU ---------------------------------------------------------

if [ ! -e /dev/nvidiactl ] && [ ! -e /dev/kfd ]; then
    it "nccl without a GPU: one clear line within 5 s, no command"
    run "$bin/gpulaunch" --local --nodes 2 --backend nccl \
        -- touch "$scratch/started"
    expect_status 20
    expect_within_ms 5000
    expect_last_line '^gpulaunch: self-test phase facts: NCCL cannot be used on'
    expect_last_line 'local-\[0-1\]: '
    expect_not_started
    expect_no_process
    forget_logs

    it "auto without a GPU: runs on host memory and says so"
    launch --nodes 2 --backend auto --result "$scratch/auto.json" -- true
    expect_status 0
    expect_has "$err" 'self-test passed on host memory over TCP \(no node has a GPU'
    expect_json "$scratch/auto.json" 'r["self_test"]["backend"] == "host-tcp"
        and not r["self_test"]["simulated"]'

    it "auto says nothing of it with -q"
    launch --nodes 2 -q -- true
    expect_status 0
    expect_empty "$err"
fi

it "a bandwidth that host memory does not reach: exit code 30, both figures"
launch --nodes 2 --backend host --min-busbw 99999 \
    --result "$scratch/slow.json" -- true
expect_status 30
expect_has "$err" \
    '^# all-reduce on host memory .*: FAILED, below --min-busbw$'
expect_has "$err" '^ +[0-9]+ +[0-9]+ float +sum '
expect_json "$scratch/slow.json" 'r["self_test"]["status"] == "failed"
    and len(r["self_test"]["rows"]) > 1 and r["self_test"]["rank_count"] == 2'
expect_last_line 'busbw of all-reduce at .* is [0-9.]+ GB/s, below the 99999'
expect_nothing_left
forget_logs

it "nccl-tests' sizes and counts hold on host memory too"
launch --nodes 2 --backend host -b 1K -e 1M --stepfactor 32 --iters 2 \
    --result "$scratch/host.json" -- true
expect_status 0
expect_json "$scratch/host.json" \
    '[(row["bytes"], row["iterations"]) for row in r["self_test"]["rows"]] ==
    [(1024, 2), (32768, 2), (1048576, 2)]'

it "--nccl-lib must be a file, before anything is started"
launch --backend nccl --nccl-lib "$scratch/none.so" -- true
expect_status 125
expect_last_line 'nccl-lib: .*/none.so: No such file or directory'
launch --backend nccl --nccl-lib "$scratch" -- true
expect_status 125
expect_last_line 'nccl-lib: .* is not a file; name the library'

# ---- on doubles, nothing wrong ---------------------------------------------

it "4 nodes of 2 devices pass; every report says SIMULATED, nothing is judged"
on_doubles "" --result "$scratch/pass.json"
expect_status 0
[ -e "$scratch/started" ] || fail "the command was not started"
expect_has "$err" '^gpulaunch: SIMULATED libraries: local-\[0-3\]: NCCL 2\.28\.9'
expect_has "$err" '^# SIMULATED all-reduce over test doubles, 8 ranks on 4 nodes'
expect_has "$err" '^gpulaunch: SIMULATED self-test passed'
expect_json "$scratch/pass.json" 'r["self_test"]["simulated"] and
    r["self_test"]["backend"] == "double" and r["self_test"]["rank_count"] == 8'
expect_json "$scratch/pass.json" '{row["collective"]
    for row in r["self_test"]["rows"]} == {"all-reduce", "all-gather",
    "reduce-scatter", "broadcast", "all-to-all", "send/recv"}'
expect_json "$scratch/pass.json" 'all(row["wrong_elements"] == 0 and
    row["verdict"] is None and row["median_seconds"] > 0
    for row in r["self_test"]["rows"])'
expect_nothing_left

it "a device that is held down and nodes that differ are told, and run"
on_doubles 'node local-3 driver 570.86\ngpu local-1 0 throttle 0x40\ngpu local-2 0 memory 40GiB'
expect_status 0
expect_has "$err" 'device GPU-.* \(bus id .*\) of node local-1: GPU-220 clocks are held down'
expect_has "$err" 'GPU-204 .*local-2 has 40.0 GiB, local-\[0-3\] have 80.0 GiB'
expect_has "$err" 'VER-304 .*local-3 has 570.86, local-\[0-2\] have'
expect_nothing_left

it "an entry of CUDA_VISIBLE_DEVICES that names no device is told, and where"
CUDA_VISIBLE_DEVICES=1,9 on_doubles ""
expect_status 0
expect_has "$err" 'ENV-131 CUDA_VISIBLE_DEVICES of local-\[0-3\]: "9" names no'
expect_nothing_left
CUDA_VISIBLE_DEVICES=0,0 on_doubles ""
expect_status 20
expect_last_line 'phase facts: .*local-\[0-3\]: .*CUDA_VISIBLE_DEVICES=0,0 "0" names'
expect_not_started
expect_nothing_left

it "each node of 2 devices reduces by itself too, once the world has"
on_doubles "" --result "$scratch/pass.json"
expect_status 0
expect_has "$err" '^# SIMULATED all-reduce within each node, 2 ranks$'
expect_json "$scratch/pass.json" '[(row["collective"], row["bytes"])
    for row in r["self_test"]["rows"] if row["scope"] == "node"] ==
    [("all-reduce", 32768)]'

it "an NCCL that cannot split: that much could not be checked, and is said"
on_doubles "fault missing-symbol ncclCommSplit" --result "$scratch/whole.json"
expect_status 0
expect_has "$err" 'could not check all-reduce within each node: NCCL has no'
expect_json "$scratch/whole.json" \
    '{row["scope"] for row in r["self_test"]["rows"]} == {"world"}'

it "-n and -w and -f of nccl-tests by their long names: sizes and counts"
on_doubles "" --stepfactor 4 --iters 3 --warmup_iters 0 --check 2 \
    --result "$scratch/sweep.json"
expect_status 0
expect_json "$scratch/sweep.json" '[row["bytes"] for row in
    r["self_test"]["rows"] if row["collective"] == "all-reduce" and
    row["scope"] == "world"] ==
    [8 << i for i in range(0, 14, 2)]'
expect_json "$scratch/sweep.json" \
    '{row["iterations"] for row in r["self_test"]["rows"]} == {3}'

it "settings of NCCL are told as such, not as libraries"
NCCL_DEBUG=WARN on_doubles "" --result "$scratch/settings.json"
expect_status 0
expect_has "$err" '^gpulaunch: settings of the user: local-\[0-3\]: NCCL_DEBUG=WARN'
expect_json "$scratch/settings.json" 'r["self_test"]["settings"] ==
    ["local-[0-3]: NCCL_DEBUG=WARN"] and len(r["self_test"]["libraries"]) == 1'

it "one device: its bus bandwidth is n/a, not 0"
on_doubles "node local-0 gpus 1" --nodes 4 -q
expect_status 0
expect_empty "$err"
GPULAUNCH_DOUBLE_SCENARIO=$scratch/scenario LD_LIBRARY_PATH=$doubles \
    run "$bin/gpulaunch" --local --backend nccl -e 64K -- true
expect_status 0
expect_has "$err" '1 rank on 1 node'
expect_has "$err" ' n/a '

it "the library that --nccl-lib names is the one that is tested"
cp "$doubles/libnccl.so.2" "$scratch/libnccl.mine.so"
(cd "$scratch" && on_doubles "" --nccl-lib libnccl.mine.so)
grep -qF "$scratch/libnccl.mine.so)" "$err" ||
    fail "the path of --nccl-lib is not reported"

it "a LD_LIBRARY_PATH of 5000 places: exit code 20, and the reason"
places=$(printf '/no/where/%d:' {1..5000})
real=$doubles doubles=$places$doubles
on_doubles ""
doubles=$real
expect_status 20
expect_last_line 'self-test phase facts: .*over 4096 places to look for'
forget_logs

it "a LD_LIBRARY_PATH of 1000 places is gone through"
doubles=$(printf '/no/where/%d:' {1..1000})$real
on_doubles "" -q
doubles=$real
expect_status 0

it "a rank that comes late is waited for"
on_doubles "fault rank 5 late 1s"
expect_status 0

it "the command starts when device memory is free again, not before"
on_doubles_behind "fault rank 5 late 1s" -v
within 20 "the self-test did not start" grep -q 'self-test started' "$err"
sed 's/gpus 2$/gpus 2 used 4GiB/' "$scratch/scenario" >"$scratch/occupied"
cp "$scratch/scenario" "$scratch/free"
mv "$scratch/occupied" "$scratch/scenario"
within 20 "the self-test did not pass" grep -q 'self-test passed' "$err"
sleep 1
expect_not_started
mv "$scratch/free" "$scratch/scenario"
finish
expect_status 0
[ -e "$scratch/started" ] || fail "the command was not started"
expect_nothing_left

# ---- on doubles, every fault -----------------------------------------------

declare -A reasons=(
    [20]=self_test_failed [21]=self_test_wrong_data [30]=self_test_slow
    [40]=deadline [41]=node_lost
)

# expect_result CODE: the result of a failed self-test on doubles.
expect_result()
{
    expect_json "$scratch/result.json" "r['exit_code'] == $1 and
        r['reason'] == '${reasons[$1]}' and
        r['message'].startswith('SIMULATED: ') and
        r['self_test']['status'] == 'failed' and r['self_test']['simulated']"
}

# Of each phase, where one is to be waited out; short, but a busy machine
# needs some time to come as far as that phase.
bound=$((5 * slow))
him="rank 5 (node local-2, device $uuid)"
alike="which one holds up the others cannot be told"

# What is wrong | exit code | scenario | what the last line has, parted by ;
while IFS='|' read -r what code scenario words; do
    it "$what: exit code $code, named; no process is left"
    waits=()
    if [ "$code" -eq 40 ]; then
        waits=(--self-test-timeout "${bound}s")
    fi
    on_doubles "$scenario" "${waits[@]}" --result "$scratch/result.json"
    expect_status "$code"
    expect_result "$code"
    expect_last_line '^gpulaunch: SIMULATED: self-test'
    while IFS= read -r word; do
        tail -n 1 "$err" | grep -qF -- "$word" ||
            fail "the last line does not have: $word"
    done <<<"${words//;/$'\n'}"
    # A stopped process is killed only when its abort had its time.
    spare=5000
    [[ $scenario != *' STOP '* ]] || spare=16000
    [ "$code" -ne 40 ] || expect_within_ms $((bound * 1000 + spare))
    expect_not_started
    expect_no_process
    forget_logs
done <<TABLE
no device on one node|20|node local-2 gpus 0|phase facts;local-2:;no CUDA-capable device
a driver that is not ready|20|node local-2 cuda-init 802|phase facts;local-2:;system not yet initialized
another version|20|node local-2 nccl 22703|phase facts;local-2 has 2.27.3;local-[0-1,3] have 2.28.9
a driver that hangs|40|fault node local-2 hang cuinit|phase facts;3 of 4 nodes;missing: local-2, inside cuInit for
a scout that is stopped|40|fault node local-2 signal STOP at facts|phase facts;3 of 4 nodes;missing: local-2, whose process is stopped
a symbol that is missing|20|fault node local-2 missing-symbol ncclCommAbort|phase facts;local-2:;has no symbol ncclCommAbort
a device that two ranks claim|20|gpu local-3 0 uuid $uuid|phase facts;rank 5 (node local-2;rank 6 (node local-3;same device $uuid
a context that fails|20|fault node local-2 gpu 1 code 999 at context|phase cuda;$him;CUDA error 999
a context that hangs|40|fault node local-2 gpu 1 hang context|phase cuda;7 of 8 ranks;missing: $him, inside cuDevicePrimaryCtxRetain for;it said last: making a context on $uuid
a unique ID that fails|20|fault node local-0 code 3 at uid|phase uid;rank 0 (node local-0;ncclGetUniqueId;NCCL error 3
a unique ID that never comes|40|fault node local-0 hang uid|phase uid;0 of 1 roots;missing: rank 0 (node local-0, device GPU-;inside ncclGetUniqueId for
a root that dies after giving its ID|20|fault rank 0 signal KILL at init|phase init;rank 0 (node local-0;signal 9;root of unique ID 0, which it had given
a rank that never arrives|40|fault rank 5 never-arrives|phase init;0 of 8 ranks;missing: $him, inside ncclCommInitRankConfig for;the other 7 wait
a rank that comes too late|40|fault rank 5 late 5m|phase init;0 of 8 ranks;missing: $him, inside ncclCommInitRankConfig for
a process that is stopped in init|40|fault rank 5 signal STOP at init|phase init;0 of 8 ranks;missing: $him, whose process is stopped
a hang in init|40|fault rank 5 hang init|phase init;0 of 8 ranks;missing: $him, whose NCCL is behind that of the others
an error in init|20|fault rank 5 code 3 at init|phase init;$him;internal error;NCCL error 3
a crash in init|20|fault rank 5 signal SEGV at init|phase init;$him;signal 11
an error in the third all-reduce|20|fault rank 5 code 2 at allreduce call 3|phase coll;$him;all-reduce of;NCCL error 2
a crash in a collective|20|fault rank 5 signal SEGV at allreduce|phase coll;$him;signal 11
a device that hangs in a collective|40|fault rank 5 hang collective|phase coll;0 of 8 ranks;missing: $him, whose device does not answer;it said last: the first all-gather
a device that hangs within its node|40|fault rank 5 hang allreduce call 40|phase coll;6 of 8 ranks;missing: $him, whose device does not answer;the other one waits;all-reduce within the node
a transfer that stands still, which no rank can see|40|fault rank 5 stall allreduce|phase coll;0 of 8 ranks;ranks 0-7 (nodes local-[0-3]);$alike;all-reduce of 8 bytes
a process that is stopped in a collective|40|fault rank 5 signal STOP at allreduce|phase coll;0 of 8 ranks;missing: $him, whose process is stopped
a flipped bit|21|fault rank 5 flip element 1000 bit 3|phase coll;$him;element 1000 of an all-reduce of;wrong in bit 3
a flipped bit, and a hang after it|21|fault rank 5 flip element 1 bit 3\\nfault rank 5 hang finalize|phase coll;$him;element 1 of an all-reduce of;wrong in bit 3
a flipped bit of another collective|21|fault rank 5 flip element 7 bit 30 at allgather|$him;element 7 of an all-gather of;wrong in bit 30
a flipped bit within a node|21|fault rank 5 flip element 7 bit 3 at allreduce call 42|$him;element 7 of an all-reduce within the node of 32768;wrong in bit 3
a hang in the split by nodes|40|fault rank 5 hang split|phase coll;0 of 8 ranks;splitting the communicator by nodes;$alike
an error in finalize|20|fault rank 5 code 1 at finalize|phase end;$him;NCCL error 1
a hang in finalize|40|fault rank 5 hang finalize|phase end;7 of 8 ranks;missing: $him;it said last: finalising the communicator
a hang in destroy|40|fault rank 5 hang destroy|phase end;7 of 8 ranks;missing: $him, inside ncclCommDestroy for;it said last: destroying the communicator
TABLE

it "sizes that no device has room for: exit code 20, both sizes, no pass"
for level in quick full; do
    least=1T most=1T on_doubles "" --self-test "$level" --min-busbw 1 \
        --result "$scratch/result.json"
    expect_status 20
    expect_result 20
    expect_last_line 'phase coll: .*no all-reduce fits: .* 1099511627776 bytes'
    expect_not_started
    forget_logs
done

it "links below --min-busbw: exit code 30, both figures, the slow node"
least=64K on_doubles "link latency 2ms bandwidth 10GB/s\nfault rank 5 slow 20x" \
    --min-busbw 500 --result "$scratch/result.json"
expect_status 30
expect_result 30
expect_last_line 'SIMULATED: self-test .*busbw of all-reduce at 64 KiB is'
expect_last_line 'below the 500\.00 GB/s of --min-busbw; within its node it took longest on rank [45] \(node local-2, device GPU-'
expect_has "$err" '^# SIMULATED all-reduce .*: FAILED, below --min-busbw$'
expect_json "$scratch/result.json" 'len(r["self_test"]["rows"]) > 0'
expect_no_process
forget_logs

it "an abort that hangs is left behind: its time is bounded, nothing is left"
on_doubles "fault rank 5 hang collective\nfault rank 3 hang abort" \
    --self-test-timeout "${bound}s"
expect_status 40
expect_last_line 'phase coll'
expect_within_ms $((bound * 1000 + 13000))
expect_no_process
forget_logs

it "a worker that is killed in the self-test: exit code 41, the node named"
on_doubles_behind "fault rank 5 hang collective" -v \
    --result "$scratch/result.json"
within 20 "the self-test did not start" grep -q 'self-test started' "$err"
# Its keeper or its agent goes with the other, perhaps before we come to it.
for pid in $(pids_of gpulaunch-worker); do
    if tr '\0' ' ' <"/proc/$pid/cmdline" | grep -q -- '--name local-2 '; then
        kill -KILL "$pid" || true
    fi
done 2>/dev/null
finish
expect_status 41
expect_result 41
expect_last_line 'local-2'
expect_no_process 5
forget_logs

it "Ctrl-C in a self-test that hangs: exit code 130, nothing is left"
on_doubles_behind "fault rank 5 hang collective" -v
within 20 "the self-test did not start" grep -q 'self-test started' "$err"
kill -INT "$front_end"
finish
expect_status 130
expect_no_process 5

done_stories
