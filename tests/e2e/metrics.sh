#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What ranks tell of their work, with --metrics: a line on GPULAUNCH_METRIC_FD,
# and the steps behind their warm-up.
source "$(dirname "$0")/../lib/e2e.sh"

# value KEY RANK: of the metrics in the result.
value()
{
    "$python" -c '
import json, sys
rows = json.load(open(sys.argv[1]))["metrics"]
print({r["rank"]: r for r in rows}[int(sys.argv[3])][sys.argv[2]])
' "$scratch/result" "$1" "$2"
}

expect_value()
{
    [ "$(value "$1" "$2")" = "$3" ] ||
        fail "$1 of rank $2 is $(value "$1" "$2"), not $3"
}

it "the last line of each rank, and the steps that it has told, in the result"
launch --nodes 2 --per-node 2 --self-test off --metrics \
    --result "$scratch/result" -- sh -c '
        for i in 1 2 3 4 5 6 7 8; do echo >&$GPULAUNCH_BEAT_FD; sleep 0.01; done
        [ $RANK = 3 ] && exit
        echo "early" >&$GPULAUNCH_METRIC_FD
        echo "$RANK.5 images/s" >&$GPULAUNCH_METRIC_FD'
expect_status 0
expect_value text 0 "0.5 images/s"
expect_value text 2 "2.5 images/s"
expect_value text 3 None
expect_value steps 0 3
expect_value steps 3 3
expect_nothing_left

it "no steps are told, no hang is looked for: the figure comes all the same"
launch --nodes 1 --self-test off --metrics --hang-timeout off \
    --result "$scratch/result" -- \
    sh -c 'echo "$GPULAUNCH_METRIC_FD" >&$GPULAUNCH_METRIC_FD'
expect_status 0
expect_value text 0 3
expect_value steps 0 0
expect_value steps_seconds 0 None

it "a rank that fails has told its figure too"
launch --nodes 1 --self-test off --metrics --result "$scratch/result" -- \
    sh -c 'echo 7 >&$GPULAUNCH_METRIC_FD; exit 3'
expect_status 3
expect_value text 0 7
forget_logs

it "without --metrics there is no such variable, and null in the result"
launch --nodes 1 --self-test off --result "$scratch/result" -- \
    sh -c 'echo "${GPULAUNCH_METRIC_FD-none}"'
expect_status 0
expect_out none
grep -q '"metrics":null' "$scratch/result" || fail "metrics are not null"
expect_nothing_left
done_stories
