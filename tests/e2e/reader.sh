#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Nobody reads what gpulaunch writes: a job that failed or was stopped ends all
# the same, and says what was not written; one that went well waits and says so.
. "$(dirname "$0")/../lib/e2e.sh"

# unread ARGUMENT...: gpulaunch --local with these, writing to a pipe that is
# open for reading, by descriptor 4, and not read.
mkfifo "$scratch/unread"
unread()
{
    env --default-signal=INT,QUIT "$mark" "$bin/gpulaunch" --local \
        --self-test off --grace 1s "$@" \
        >"$scratch/unread" 2>"${errors:-$err}" </dev/null &
    front_end=$!
    exec 4<"$scratch/unread"
}

# expect_counted RANK: its log has all that it wrote, which are numbers.
expect_counted()
{
    local log

    log=$(find "$XDG_STATE_HOME" -name "rank-$1.out")
    [ -s "$log" ] || fail "there is no log of rank $1"
    cmp <(head -c "$(stat -c %s "$log")" <(seq 1 1000000)) "$log" ||
        fail "the log of rank $1 is not what the rank wrote"
}

# has_written BYTES: the log of rank 0 has so many at least.
has_written()
{
    [ -n "$(find "$XDG_STATE_HOME" -name rank-0.out -size +"$1"c)" ]
}

it "a rank fails while nobody reads standard output: an end, and what is lost"
unread --nodes 2 -- sh -c '[ $RANK = 0 ] && exec seq 1 1000000
    sleep 2; exit 7'
finish
expect_status 7
expect_has "$err" 'nobody has read standard output for 10 s: .* were not written; the log files are complete'
expect_has "$err" 'first failure: rank 1 on node local-1'
expect_has "$err" 'rank 1 on node local-1 .* exited with code 7; its log: '
expect_counted 0
forget_logs
expect_nothing_left
exec 4<&-

it "SIGTERM ends it likewise"
unread --nodes 1 -- seq 1 1000000
within 20 "the rank did not write" has_written 500000
kill -TERM "$front_end"
finish
expect_status 143
expect_has "$err" 'nobody has read standard output for 10 s'
expect_counted 0
forget_logs
expect_nothing_left
exec 4<&-

it "both streams in one pipe that nobody reads"
errors=$scratch/unread
unread --nodes 1 -- sh -c 'seq 1 100000; exit 9'
finish
expect_status 9
expect_counted 0
forget_logs
expect_nothing_left
exec 4<&-
errors=

it "a job that went well waits for its reader, says so, and loses nothing"
unread --nodes 1 -- seq 1 100000
within 20 "nothing is said of the wait" \
    grep -q 'all ranks have ended; waiting for the reader of standard output' "$err"
cat <&4 >"$out"
finish
expect_status 0
cmp <(seq 1 100000) "$out" || fail "the output is not what the rank wrote"
expect_nothing_left

done_stories
