#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# gpulaunch check and doctor on this machine: what is said where, the exit codes
# that need no network, --json and --record.
. "$(dirname "$0")/../lib/e2e.sh"

record=$scratch/check.record

it "a check of local nodes: 0, what was found on standard output, nothing left"
run "$bin/gpulaunch" check --local --nodes 3 --record "$record"
expect_status 0
expect_has "$out" '^PASSED  3 nodes: 0 failed, [0-9]+ unknown, '
expect_has "$out" '^# all-reduce on host memory over TCP, 3 nodes'
expect_lacks "$err" '^#'
expect_no_process

it "its record is what report and diff read"
run "$bin/gpulaunch" report "$record" --junit "$scratch/check.xml"
expect_status 0
run "$bin/gpulaunch" diff "$record" "$record"
expect_status 0

it "--json: one object, with the same counts"
run "$bin/gpulaunch" check --local --nodes 2 --json
expect_status 0
expect_json "$out" 'r["verb"] == "check" and r["exit_code"] == 0 and
    len(r["nodes"]) == 2 and "os.kernel" in r["nodes"][0]["facts"] and
    r["counts"]["fail"] == 0 and r["counts"]["pass"] ==
    sum(f["severity"] == "pass" for f in r["findings"])'

it "--strict: what could not be checked fails it, too"
run "$bin/gpulaunch" check --local --nodes 2 --strict
expect_status 20
expect_has "$out" '^FAILED  2 nodes: 0 failed, [1-9]'

it "below --min-busbw: 30, and the figure that was asked for"
run "$bin/gpulaunch" check --local --nodes 2 --min-busbw 90000
expect_status 30
expect_has "$out" '^FAIL    PERF-705'
expect_has "$out" 'expected at least 90000\.00 GB/s'
expect_has "$out" '^    begin with PERF-705'

it "a message that says nothing of links: the test is refused, no node is"
run "$bin/gpulaunch" check --local --nodes 2 -b 8 -e 64 -n 5 -c 1 \
    --min-busbw 90000
expect_status 125
expect_has "$out" '^FAIL    PERF-709'
expect_has "$out" 'too small'

it "a command that is not there is named, and is not started"
run "$bin/gpulaunch" check --local --nodes 2 --self-test off \
    -- "$scratch/no-such-command"
expect_status 20
expect_has "$out" '^FAIL    ENV-141  local-\[0-1\]'
run "$bin/gpulaunch" check --local --nodes 2 --self-test off \
    -- touch "$scratch/started"
expect_status 0
[ ! -e "$scratch/started" ] || fail "the command was started"

it "the doctor looks at this machine only, and lists what passed with -v"
run "$bin/gpulaunch" doctor -v
expect_status 0
expect_has "$out" '^PASS    HOST-'
expect_has "$out" '^PASSED  1 node: '
expect_lacks "$out" '^#'
run "$bin/gpulaunch" doctor --hosts a
expect_status 125
expect_last_line 'doctor: no option --hosts; it looks at this machine only'

it "options of a run are refused"
run "$bin/gpulaunch" check --local --stdin 0
expect_status 125
expect_last_line 'check: no option --stdin'
run "$bin/gpulaunch" --local --strict -- true
expect_status 125
expect_last_line '--strict is an option of gpulaunch check only'

it "wrong data on doubles: 21, with rank, node, device, element and bit"
doubles=$bin/../tests/doubles
printf '%b\n' 'node local-* gpus 2' 'fault rank 3 flip element 1000 bit 3' \
    >"$scratch/scenario"
GPULAUNCH_DOUBLE_SCENARIO=$scratch/scenario LD_LIBRARY_PATH=$doubles \
    run "$bin/gpulaunch" check --local --nodes 2 --backend nccl \
    --minbytes 8 --maxbytes 64K
expect_status 21
expect_has "$out" '^FAIL    DATA-801  local-1$'
expect_has "$out" 'wrong data on rank 3 \(node local-1, device GPU-.*element 1000 of .*bit 3'
expect_has "$out" '^SIMULATED FAILED  2 nodes: '
expect_no_process

it "a node that is lost ends it early: 41, and what is known is told"
run_behind "$bin/gpulaunch" check --local --nodes 3 --self-test full
within 30 "no self-test" grep -q 'no pair trials' "$err"
kill -KILL "$(keeper_of local-1)"
finish
expect_status 41
expect_has "$out" '^FAIL    INIT-902  local-1'
expect_has "$out" '^ENDED EARLY  3 nodes: '
expect_no_process

it "nodes that never come: 40, and how many are missing"
run "$bin/gpulaunch" check --nodes 2 --insecure --address 127.0.0.1 \
    --join-timeout 1s
expect_status 40
expect_has "$out" '^FAIL    INIT-901$'
expect_has "$out" 'missing: 2 nodes'

done_stories
