#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Standard input: to the ranks that are to have it, byte by byte, however it
# comes, and never in the way of the job's end.
. "$(dirname "$0")/../lib/e2e.sh"

# feed FILE ARGUMENT...: gpulaunch --local with these, reading FILE.
feed()
{
    local file=$1 start
    shift

    start=$(now_ms)
    status=0
    env "$mark" timeout --kill-after=5 "$bound_seconds" \
        "$bin/gpulaunch" --local --self-test off "$@" \
        >"$out" 2>"$err" <"$file" || status=$?
    took_ms=$(($(now_ms) - start))
}

# sums COUNT: so many ranks have written what they read; print the sums.
sums()
{
    local rank

    for ((rank = 0; rank < $1; rank++)); do
        sha256sum <"$scratch/read.$rank" | cut -d' ' -f1
    done
}

sum_of()
{
    sha256sum <"$1" | cut -d' ' -f1
}

empty=$(sum_of /dev/null)
keep="cat >$scratch/read.\$RANK"
head -c 20000003 /dev/urandom >"$scratch/data"
whole=$(sum_of "$scratch/data")

it "rank 0 reads it, the others read nothing"
feed "$scratch/data" --nodes 2 --per-node 2 -- sh -c "$keep"
expect_status 0
[ "$(sums 4 | xargs)" = "$whole $empty $empty $empty" ] ||
    fail "the ranks have read: $(sums 4 | xargs)"
expect_empty "$err"

it "--stdin all: every rank of every node has all of it, from a pipe too"
feed <(cat "$scratch/data") --nodes 4 --per-node 2 --stdin all -- sh -c "$keep"
expect_status 0
[ "$(sums 8 | sort -u)" = "$whole" ] || fail "the ranks have read: $(sums 8)"

it "--stdin R, and srun's --input"
feed "$scratch/data" --nodes 3 --input 2 -- sh -c "$keep"
expect_status 0
[ "$(sums 3 | xargs)" = "$empty $empty $whole" ] ||
    fail "the ranks have read: $(sums 3 | xargs)"

it "--stdin none leaves it to whoever comes after"
{
    feed /dev/stdin --nodes 2 --stdin none -- sh -c "$keep"
    rest=$(cat)
} < <(echo "the next one's")
expect_status 0
[ "$(sums 2 | sort -u)" = "$empty" ] || fail "the ranks have read something"
[ "$rest" = "the next one's" ] || fail "what is left is: $rest"

it "an empty one, one that is closed, and one for writing only, are at their end"
feed /dev/null --nodes 2 --stdin all -- sh -c "$keep"
expect_status 0
[ "$(sums 2 | sort -u)" = "$empty" ] || fail "the ranks have read something"
for how in '<&-' '0>/dev/null'; do
    rm -f "$scratch"/read.*
    run sh -c "exec '$bin/gpulaunch' --local --self-test off --stdin all \
        -- sh -c '$keep' $how"
    expect_status 0
    [ "$(sums 1)" = "$empty" ] || fail "with $how the rank has read something"
done

it "what cannot be read is said, and is no success"
feed / -- cat
expect_status 125
expect_last_line 'standard input could not be read to its end: Is a directory'

it "each line is there as soon as it is written"
mkfifo "$scratch/slow"
exec 3<>"$scratch/slow"
env --default-signal=INT,QUIT "$mark" "$bin/gpulaunch" --local \
    --self-test off -- cat >"$out" 2>"$err" <"$scratch/slow" 3>&- &
front_end=$!
echo one >&3
within 20 "the first line did not come" grep -q one "$out"
echo two >&3
within 5 "the second line did not come" grep -q two "$out"
exec 3>&-
finish
expect_status 0

it "the job's end does not wait for a writer that says nothing"
exec 3<>"$scratch/slow"
feed "$scratch/slow" --nodes 2 --stdin all -- true
exec 3>&-
expect_status 0
expect_within_ms 5000

it "a rank that ends, or closes it, swallows the rest"
feed "$scratch/data" --nodes 2 --stdin all -- \
    sh -c 'if [ $RANK = 0 ]; then head -c 5 >&2; else '"$keep"'; fi'
expect_status 0
[ "$(sum_of "$scratch/read.1")" = "$whole" ] || fail "rank 1 lacks something"
feed <(yes) -- sh -c 'exec <&-; sleep 0.3'
expect_status 0

# How much of an endless file has been read.
read_so_far()
{
    sed -n 's/^pos:[[:space:]]*//p' "/proc/$producer/fdinfo/0"
}

it "a rank that does not read holds its writer back; nothing piles up"
head -c 100000000 /dev/zero >"$scratch/zeros"
mkfifo "$scratch/pipe"
cat <"$scratch/zeros" >"$scratch/pipe" &
producer=$!
env --default-signal=INT,QUIT "$mark" "$bin/gpulaunch" --local \
    --self-test off -- sh -c "while [ ! -e $scratch/go ]; do sleep 0.05; done
        $keep" >"$out" 2>"$err" <"$scratch/pipe" &
front_end=$!
window_is_full()
{
    local before

    before=$(read_so_far)
    sleep 0.3
    [ "$before" -ge 1048576 ] && [ "$(read_so_far)" = "$before" ]
}
within 20 "the writer was not held back" window_is_full
[ "$(read_so_far)" -le 4000000 ] || fail "$(read_so_far) bytes were taken"
touch "$scratch/go"
finish
expect_status 0
cmp "$scratch/zeros" "$scratch/read.0" || fail "the rank has read something else"

it "Ctrl-C ends a job whose input flows"
run_with_yes()
{
    env --default-signal=INT,QUIT "$mark" "$bin/gpulaunch" --local \
        --self-test off --nodes 2 --stdin all -- \
        sh -c ": >$scratch/up.\$RANK; exec cat >/dev/null" \
        >"$out" 2>"$err" < <(yes) &
    front_end=$!
}
run_with_yes
both_are_up()
{
    [ -e "$scratch/up.0" ] && [ -e "$scratch/up.1" ]
}
within 20 "the ranks did not come up" both_are_up
kill -s INT "$front_end"
finish
expect_status 130
forget_logs
expect_nothing_left

# start_reader: two ranks, the first of which reads what comes by descriptor 3.
start_reader()
{
    rm -f "$scratch"/up.* "$scratch"/read.* "$scratch/over"
    exec 3<>"$scratch/slow"
    env --default-signal=INT,QUIT "$mark" "$bin/gpulaunch" --local \
        --self-test off --nodes 2 -- sh -c ": >$scratch/up.\$RANK
            $keep; while [ ! -e $scratch/over ]; do sleep 0.05; done" \
        >"$out" 2>"$err" <"$scratch/slow" 3>&- &
    front_end=$!
    within 20 "the ranks did not come up" both_are_up
}

# all_is_read BYTES: rank 0 has them all, and its agent waits for more: so what
# it gave credit for is on its way.
all_is_read()
{
    local agent

    [ "$(stat -c %s "$scratch/read.0")" -eq "$1" ] &&
        agent=$(agent_of local-0) && [ -n "$agent" ] &&
        grep -q '^State:[[:space:]]*S' "/proc/$agent/status"
}

# agents_came COUNT: so many have taken over.
agents_came()
{
    [ "$(grep -c 'agent of this node was restarted' "$err")" -eq "$1" ]
}

it "an agent dies while its rank's input is open, three times: no byte is lost"
start_reader
for round in 0 1 2 3; do
    part=$((round * 300001))
    head -c $((part + 300001)) "$scratch/data" | tail -c 300001 >&3
    within 20 "part $round did not come" all_is_read $((part + 300001))
    [ $round -lt 3 ] || break
    kill -KILL "$(agent_of local-0)"
    within 20 "no agent came back" agents_came $((round + 1))
done
exec 3>&-
touch "$scratch/over"
finish
expect_status 0
cmp <(head -c 1200004 "$scratch/data") "$scratch/read.0" ||
    fail "the rank has read something else"

it "one that dies with input that the rank has not got ends the job with 75"
cat <"$scratch/zeros" >"$scratch/pipe" &
producer=$!
env --default-signal=INT,QUIT "$mark" "$bin/gpulaunch" --local \
    --self-test off -- sleep 324 >"$out" 2>"$err" <"$scratch/pipe" &
front_end=$!
within 20 "the writer was not held back" window_is_full
kill -KILL "$(agent_of local-0)"
finish
expect_status 75
expect_last_line 'its agent ended while standard input was on its way'
! grep 'when the job had ended' "$err" || fail "old news was told"
forget_logs
expect_nothing_left 5

# ranks_came COUNT: so many have made their file.
ranks_came()
{
    [ "$(find "$scratch" -maxdepth 1 -name 'up.*' | wc -l)" -eq "$1" ]
}

# How many descriptors an agent has is its own matter: so the limit goes over
# the place where the pipes of the last rank do not fit any more. Whether the
# agent comes through is open; that nothing hangs is not.
it "an agent that has no descriptors left for its ranks' pipes: an end, and why"
is_told=
for less in 0 1 2 3; do
    rm -f "$scratch"/up.*
    exec 3<>"$scratch/slow"
    env --default-signal=INT,QUIT "$mark" "$bin/gpulaunch" --local \
        --self-test off --per-node 12 --stdin 11 --grace 1s -- sh -c \
        ": >$scratch/up.\$RANK; [ \$RANK = 11 ] || exec sleep 8; exec cat" \
        >"$out" 2>"$err" <"$scratch/slow" 3>&- &
    front_end=$!
    within 20 "the ranks did not come" ranks_came 12
    keeper=$(keeper_of local-0)
    limit=$(($(find "/proc/$keeper/fd" -mindepth 1 -printf '%f\n' | sort -n | tail -n 1) - less))
    prlimit --pid "$keeper" --nofile="$limit:$limit"
    kill -KILL "$(agent_of local-0)"
    within 10 "no agent came" grep -qE 'local-0 is (away|back)|node local-0' "$err"
    exec 3>&-
    finish
    if [ "$status" -ne 0 ]; then
        expect_status 75
        expect_last_line 'node local-0'
    fi
    if grep -q 'cannot take over the pipes of 1 rank: too many open files' "$err"; then
        is_told=yes
    fi
    expect_no_process 5
done
[ -n "$is_told" ] || fail "no agent had too few descriptors"
forget_logs

it "one whose rank's input has ended is no loss either"
start_reader
exec 3>&-
input_has_ended()
{
    ! pids_of cat | grep -q .
}
within 10 "the input did not end" input_has_ended
kill -KILL "$(agent_of local-0)"
within 10 "no agent came back" grep -q 'agent of this node was restarted' "$err"
touch "$scratch/over"
finish
expect_status 0

done_stories
