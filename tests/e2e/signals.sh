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

it "a rank that needs its time to save has it"
start_sleepers "trap 'sleep 12; touch $scratch/saved.\$RANK; exit 0' TERM
    up; while :; do sleep 0.1; done" --grace 30s
start=$(now_ms)
kill -s TERM "$front_end"
finish
took_ms=$(($(now_ms) - start))
expect_status 143
expect_within_ms 17000
for rank in 0 1; do
    [ -e "$scratch/saved.$rank" ] || fail "rank $rank was killed before"
done
rm "$scratch"/saved.*
expect_only_logs_left

# each_has COUNT FILE: every rank has written that many lines to it.
each_has()
{
    [ "$(sort -u "$scratch/$2.0" 2>/dev/null | wc -l)" -eq "$1" ] &&
        [ "$(sort -u "$scratch/$2.1" 2>/dev/null | wc -l)" -eq "$1" ]
}

# Ranks that write down which signals they get.
note_signals="import os, signal, sys
def note(number, frame):
    with open('$scratch/seen.' + os.environ['RANK'], 'a') as file:
        print(number, file=file)
for number in range(1, 65):
    if number not in (9, 15, 17, 19, 32, 33):
        signal.signal(number, note)
open('$scratch/up.' + os.environ['RANK'], 'w').close()
while True:
    signal.pause()"
passed=$(echo {1..64} | tr ' ' '\n' | grep -vxE \
    '1|2|4|5|6|7|8|9|11|13|15|17|19|20|21|22|23|25|31|32|33')

it "every other signal reaches all ranks, and stops nothing"
start_sleepers "exec $python -c \"$note_signals\""
for number in $passed; do
    kill -s "$number" "$front_end"
done
within 20 "signals are missing" each_has "$(wc -w <<<"$passed")" seen
[ "$(sort -un "$scratch/seen.0" | xargs)" = "$(xargs <<<"$passed")" ] ||
    fail "rank 0 got: $(sort -un "$scratch/seen.0" | xargs)"
is_gone "$front_end" && fail "gpulaunch has ended"
kill -s TERM "$front_end"
finish
expect_status 143
rm "$scratch"/seen.*
expect_only_logs_left

# is_in STATE PID...: all of these are (T: stopped).
is_in()
{
    local state=$1
    shift

    [ "$(ps -o state= -p "$(tr ' ' , <<<"$*")" | sort -u | xargs)" = "$state" ]
}

# stop_and_go_on: what start_sleepers has started.
stop_and_go_on()
{
    local ranks

    ranks=$(pids_of "$(basename "$(readlink -f /bin/sh)")" | xargs)
    kill -s TSTP "$front_end"
    within 10 "gpulaunch did not stop" is_in T "$front_end"
    # shellcheck disable=SC2086  # several pids
    within 10 "the ranks did not stop" is_in T $ranks
    kill -s CONT "$front_end"
    within 10 "gpulaunch did not go on" is_in S "$front_end"
    # shellcheck disable=SC2086
    within 10 "the ranks did not go on" is_in S $ranks
    kill -s INT "$front_end"
    finish
    expect_status 130
    expect_only_logs_left
}

it "SIGTSTP stops the ranks and then gpulaunch; SIGCONT continues all"
start_sleepers 'up; while :; do sleep 0.1; done'
stop_and_go_on

it "so it does where no shell looks after gpulaunch"
rm -f "$scratch"/up.*
run_behind setsid "$bin/gpulaunch" --local --nodes 2 --self-test off -- \
    sh -c ": >$scratch/up.\$RANK; while :; do sleep 0.1; done"
within 20 "the ranks did not come up" ranks_are_up 2
stop_and_go_on

it "ranks that stand still are awakened for the time limit"
start_sleepers "trap 'touch $scratch/got.\$RANK; exit 0' TERM
    up; while :; do sleep 0.1; done" --timeout 4s
kill -s TSTP "$front_end"
got_it()
{
    [ -e "$scratch/got.0" ] && [ -e "$scratch/got.1" ]
}
within 10 "the ranks were not awakened" got_it
kill -s CONT "$front_end"
finish
expect_status 124
rm "$scratch"/got.*
expect_only_logs_left

it "a rank that somebody has stopped is awakened by a stop, others see no SIGCONT"
start_sleepers "for s in TERM CONT; do
        trap \"echo \$s >>$scratch/seen.\$RANK\" \$s
    done
    echo \$\$ >$scratch/pid.\$RANK; up
    until grep -qs TERM $scratch/seen.\$RANK; do sleep 0.1; done
    sleep 0.5"
kill -s STOP "$(cat "$scratch/pid.0")"
within 10 "rank 0 did not stop" is_in T "$(cat "$scratch/pid.0")"
kill -s TERM "$front_end"
finish
expect_status 143
[ "$(sort "$scratch/seen.0" | xargs)" = "CONT TERM" ] ||
    fail "rank 0 got: $(xargs <"$scratch/seen.0")"
[ "$(xargs <"$scratch/seen.1")" = TERM ] ||
    fail "rank 1 got: $(xargs <"$scratch/seen.1")"
rm "$scratch"/seen.* "$scratch"/pid.*
expect_only_logs_left

it "--signal comes before the time limit, and is said"
start_sleepers "trap 'touch $scratch/got.\$RANK' USR1
    up; while :; do sleep 0.1; done" --timeout 6s --signal SIGUSR1@4s
within 6 "no signal came" got_it
finish
expect_status 124
expect_has "$err" 'signal 10 \(SIGUSR1\) was sent to all ranks: 4 s are left'
rm "$scratch"/got.*
expect_only_logs_left

it "what is ignored at the start stays ignored"
rm -f "$scratch"/up.*
run_behind sh -c "trap '' HUP USR1; exec '$bin/gpulaunch' --local --nodes 2 \
    --self-test off -- sh -c 'trap \"touch $scratch/got\" USR1 USR2
        : >$scratch/up.\$RANK; while :; do sleep 0.1; done'"
within 20 "the ranks did not come up" ranks_are_up 2
kill -s HUP "$front_end"
kill -s USR1 "$front_end"
sleep 0.3
[ ! -e "$scratch/got" ] || fail "a signal that was ignored was passed on"
kill -s USR2 "$front_end"
within 10 "SIGUSR2 did not come" test -e "$scratch/got"
kill -s TERM "$front_end"
finish
expect_status 143
expect_only_logs_left

it "closed standard output and standard error are no hindrance"
run sh -c "exec '$bin/gpulaunch' --local --nodes 2 --self-test off -- \
    sh -c 'echo out; echo err >&2; exit 3' >&- 2>&-"
expect_status 3
expect_only_logs_left
run sh -c "exec '$bin/gpulaunch' --local --nodes 2 --self-test off -- \
    sh -c 'echo out; echo err >&2' 2>&-"
expect_status 0
expect_lines "$out" 2
expect_only_logs_left

it "a reader of standard error that goes away stops nothing"
run bash -c "'$bin/gpulaunch' --local --nodes 2 --self-test off -- \
    sh -c 'echo err >&2; sleep 0.2; echo err >&2; echo out' 2> >(exec true)"
expect_status 0
expect_lines "$out" 2

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
