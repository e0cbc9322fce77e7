#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# How ranks end, and what the user's shell then sees.
. "$(dirname "$0")/../lib/e2e.sh"

it "all ranks end with 0: so does the job, with nothing left"
launch --nodes 3 -- true
expect_status 0
expect_nothing_left

it "one rank ends with 7: the job does, and the last line names rank, host, code and log"
launch --nodes 3 -- sh -c 'echo why >&2; exit $((RANK==1?7:0))'
expect_status 7
expect_last_line "rank 1\b.*\b$(hostname)\b.*\b7\b.*/rank-1\.err"
log=$(tail -n 1 "$err" | grep -oE '/[^ ]*/rank-1\.err')
[ "$(cat "$log")" = why ] || fail "the log named in the last line is wrong"
forget_logs
expect_nothing_left

it "the code is the first failing rank's, not the largest"
launch --nodes 3 --grace 2s -- \
    sh -c 'case $RANK in 2) exit 3 ;; *) trap "exit 99" TERM; sleep 60 & wait ;; esac'
expect_status 3
expect_last_line 'rank 2\b'
expect_within_ms 10000

for code in 1 75 93 124 255; do
    it "code $code of a rank is passed on unchanged"
    launch --nodes 1 --self-test off -- sh -c "exit $code"
    expect_status "$code"
done

for fate in KILL:137 SEGV:139 TERM:143; do
    it "a rank ended by SIG${fate%:*} gives ${fate#*:}, and the signal is named"
    launch --nodes 2 --self-test off -- \
        sh -c "[ \$RANK = 0 ] && exit 0; kill -${fate%:*} \$\$; sleep 60"
    expect_status "${fate#*:}"
    expect_last_line "rank 1\\b.*(SIG${fate%:*}|signal)"
done

it "ranks that survive the first failure are stopped, with what they started"
launch --nodes 2 --self-test off --grace 1s -- \
    sh -c '[ $RANK = 0 ] && { sleep 0.2; exit 5; }; trap "" TERM; sleep 77 & sleep 78'
expect_status 5
expect_within_ms 8000
forget_logs
expect_nothing_left

done_stories
