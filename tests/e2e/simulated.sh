#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Jobs on doubles that end before every node has told of its libraries: what
# one node has told is enough for SIMULATED, and without any it is not known.
. "$(dirname "$0")/../lib/e2e.sh"

doubles=$bin/../tests/doubles
[ -e "$doubles/libnccl.so.2" ] || skip "no doubles of the GPU libraries here"
export LD_LIBRARY_PATH=$doubles
export GPULAUNCH_DOUBLE_SCENARIO=$scratch/scenario

# silent PATTERN: the scouts of these nodes never answer.
silent()
{
    printf '%s\n' 'node local-* gpus 1' "fault node $1 hang cuinit" \
        >"$GPULAUNCH_DOUBLE_SCENARIO"
}

on_doubles()
{
    "${how:-launch}" --nodes 3 --backend nccl --result "$scratch/result.json" \
        "$@" -- touch "$scratch/started"
}

# expect_simulated CODE: the last line and the result say so.
expect_simulated()
{
    expect_status "$1"
    expect_last_line '^gpulaunch: SIMULATED: '
    expect_json "$scratch/result.json" 'r["self_test"]["simulated"] is True and
        r["self_test"]["backend"] == "double" and
        r["message"].startswith("SIMULATED: ")'
    [ ! -e "$scratch/started" ] || fail "the command was started"
    expect_no_process
    forget_logs
}

it "phase facts that ends by its bound"
silent local-1
on_doubles --self-test-timeout "$((2 * slow))s"
expect_simulated 40
expect_last_line 'phase facts: 2 of 3 nodes .*missing: local-1'

it "phase facts that ends by Ctrl-C"
how=launch_behind on_doubles --self-test-timeout "$((5 * slow))s"
within 20 "two nodes did not tell" \
    grep -q 'waiting: 2/3 are through phase facts of the self-test; missing: local-1' "$err"
kill -INT "$front_end"
finish
expect_simulated 130

it "phase facts that ends by --timeout"
on_doubles --timeout "$((2 * slow))s"
expect_simulated 124

it "no node has told anything: it is not known, and nothing is claimed"
silent 'local-*'
on_doubles --self-test-timeout "$((1 * slow))s"
expect_status 40
expect_last_line '^gpulaunch: self-test phase facts: 0 of 3 nodes'
expect_json "$scratch/result.json" 'r["self_test"]["simulated"] is None and
    r["self_test"]["backend"] is None'
expect_no_process

done_stories
