#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The user, or time, ends the job: every process of it ends within the grace.
. "$(dirname "$0")/../lib/e2e.sh"

# Logs of jobs that were stopped are kept; what else is left?
expect_only_logs_left()
{
    forget_logs
    expect_nothing_left
}

# ranks_are_up COUNT: that many ranks have made their file.
ranks_are_up()
{
    [ "$(find "$scratch" -maxdepth 1 -name 'up.*' | wc -l)" -eq "$1" ]
}

# start_sleepers SCRIPT [OPTION...]: two ranks that run SCRIPT, which may use
# `up` to say that they are there.
start_sleepers()
{
    local body=$1
    shift

    rm -f "$scratch"/up.*
    launch_behind --nodes 2 --self-test off "$@" -- \
        sh -c "up() { : >$scratch/up.\$RANK; }; $body"
    within 20 "the ranks did not come up" ranks_are_up 2
}

for signal in INT:130 TERM:143 HUP:129; do
    name=${signal%:*}
    it "SIG$name: the ranks get it too, the job ends with ${signal#*:}"
    start_sleepers \
        "trap 'touch $scratch/got.\$RANK; exit 0' $name; up; sleep 2 & wait"
    kill -s "$name" "$front_end"
    finish
    expect_status "${signal#*:}"
    for rank in 0 1; do
        [ -e "$scratch/got.$rank" ] || fail "rank $rank did not get SIG$name"
    done
    rm "$scratch"/got.*
    expect_only_logs_left
done

it "a rank that ignores SIGTERM is killed after --grace"
start_sleepers 'trap "" INT TERM; up; sleep 300' --grace 1s
start=$(now_ms)
kill -s INT "$front_end"
finish
took_ms=$(($(now_ms) - start))
[ "$took_ms" -ge 1000 ] || fail "killed after $took_ms ms, before the grace"
expect_within_ms 5000
expect_status 130
expect_only_logs_left

it "a second SIGINT does not wait for the grace"
start_sleepers 'trap "" INT TERM; up; sleep 300' --grace 60s
start=$(now_ms)
kill -s INT "$front_end"
within 5 "the first SIGINT was not answered" grep -qiE 'stop' "$err"
kill -s INT "$front_end"
finish
took_ms=$(($(now_ms) - start))
expect_within_ms 6000
expect_status 130
expect_only_logs_left

it "--timeout ends the job with 124 and says so"
launch --nodes 2 --self-test off --timeout 1s --grace 2s -- sleep 300
expect_status 124
expect_last_line 'time limit'
[ "$took_ms" -ge 1000 ] || fail "ended after $took_ms ms"
expect_within_ms 6000
expect_only_logs_left

it "SIGINT while nodes are awaited ends the job"
bad_node 'exec sleep 300'
run_behind "$scratch/bin/gpulaunch" --local --nodes 2 -- true
worker_is_up()
{
    [ -n "$(pids_of sleep)" ]
}
within 10 "no worker was started" worker_is_up
kill -s INT "$front_end"
finish
expect_status 130
expect_only_logs_left

done_stories
