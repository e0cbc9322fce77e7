#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Where the ranks' output goes.
. "$(dirname "$0")/../lib/e2e.sh"

it "several ranks: each line has its rank, whole lines, on the right stream"
launch --nodes 3 --self-test off -- \
    sh -c 'echo "out of $RANK"; echo "err of $RANK" >&2'
expect_status 0
[ "$(sort "$out")" = "$(printf '[%d] out of %d\n' 0 0 1 1 2 2)" ] ||
    fail "stdout is not the three lines with their ranks"
for rank in 0 1 2; do
    expect_has "$err" "^\\[$rank\\] err of $rank\$"
done
expect_lacks "$err" 'out of'

it "one rank: its bytes as they are"
launch --nodes 1 --self-test off -- printf 'a\0b\377 no newline'
expect_status 0
printf 'a\0b\377 no newline' | cmp - "$out" || fail "stdout was changed"

it "--label and --no-label turn the prefix on and off"
launch --nodes 1 --self-test off --label -- echo word
expect_out '[0] word'
launch --nodes 2 --self-test off --no-label -- echo word
expect_out "$(printf 'word\nword')"

it "lines written in pieces are not mixed with other ranks' lines"
launch --nodes 4 --self-test off -- sh -c \
    'for i in 1 2 3 4 5; do printf "rank $RANK "; sleep 0.02; echo "line $i"; done'
expect_status 0
expect_lines "$out" 20
[ "$(grep -cE '^\[([0-3])\] rank \1 line [1-5]$' "$out")" -eq 20 ] ||
    fail "lines are mixed"

it "--ranks: only these reach the console, and a single one as it is"
launch --nodes 2 --per-node 2 --self-test off --log-dir "$scratch/some" \
    --ranks 0,2-3 -- sh -c 'echo "out of $RANK"; echo "err of $RANK" >&2'
expect_status 0
[ "$(sort "$out")" = "$(printf '[%d] out of %d\n' 0 0 2 2 3 3)" ] ||
    fail "stdout is not the lines of ranks 0, 2 and 3"
[ "$(grep -c 'err of' "$err")" -eq 3 ] || fail "stderr is not of three ranks"
[ "$(cat "$scratch"/some/*/attempt-1/rank-1.out)" = 'out of 1' ] ||
    fail "the log of a rank that is not shown is not whole"
launch --nodes 3 --self-test off --tee 0 -- printf 'a\r\033[2Jb'
expect_status 0
printf 'a\r\033[2Jb' | cmp - "$out" || fail "stdout was changed"

it "--ranks of ranks that the job does not have are refused"
launch --nodes 2 --ranks 0,2 -- true
expect_status 125
expect_last_line 'the job has 2 ranks, 0 to 1'

it "--timestamps: the time of each line, in UTC, behind its label"
before=$(date -u +%Y-%m-%dT%H:%M:%S)
launch --nodes 2 --self-test off --timestamps -- echo word
expect_status 0
after=$(date -u +%Y-%m-%dT%H:%M:%S.999Z)
expect_lines "$out" 2
while read -r label stamp word; do
    [[ $label =~ ^\[[01]\]$ && $word = word ]] || fail "not a line: $label"
    [[ ! $stamp < $before && ! $stamp > $after ]] ||
        fail "$stamp is not between $before and $after"
done <"$out"

# all_have FILE TEXT: each of the four logs holds it.
all_have()
{
    [ "$(cat "$scratch/$1"/*/attempt-1/rank-?.out 2>/dev/null |
        grep -cx "$2")" -eq 4 ]
}

are_up()
{
    [ -e "$scratch/up-0" ] && [ -e "$scratch/up-1" ] &&
        [ -e "$scratch/up-2" ] && [ -e "$scratch/up-3" ]
}

it "--fold: equal lines that arrive at once are said once, with their ranks"
launch_behind --nodes 1 --per-node 4 --self-test off --fold always \
    --log-dir "$scratch/fold" -- sh -c ": >$scratch/up-\$RANK
    until [ -e $scratch/fold-go ]; do sleep 0.02; done
    echo \"loss of \$RANK\"; echo 'epoch 1 done'
    until [ -e $scratch/fold-end ]; do sleep 0.02; done"
within 20 "the ranks did not start" are_up
relay=$(pids_of gpulaunch-coordinator)
kill -STOP "$relay"
touch "$scratch/fold-go"
within 20 "the ranks did not write" all_have fold 'epoch 1 done'
kill -CONT "$relay"
touch "$scratch/fold-end"
finish
expect_status 0
expect_has "$out" '^\[0-3\] epoch 1 done$'
expect_lines "$out" 5
for rank in 0 1 2 3; do
    expect_has "$out" "^\\[$rank\\] loss of $rank\$"
done

it "progress bars in a pipe: a line a second at most, and the last state"
launch --nodes 2 --self-test off --log-dir "$scratch/bars" -- sh -c \
    'for i in $(seq 100); do printf "\r%3d%%" $i; sleep 0.02; done; echo'
expect_status 0
for rank in 0 1; do
    expect_has "$out" "^\\[$rank\\] 100%\$"
    [ "$(grep -c "^\\[$rank\\]" "$out")" -le "$((took_ms / 1000 + 2))" ] ||
        fail "rank $rank has more lines than seconds"
done
[ "$(tr -cd '\r' <"$(find "$scratch/bars" -name rank-1.out)" | wc -c)" -eq 100 ] ||
    fail "the log has not every update"

it "-q: nothing of ours on stderr, the ranks' own stays"
launch -q --nodes 2 -- sh -c '[ $RANK = 1 ] || echo mine >&2'
expect_status 0
[ "$(cat "$err")" = '[0] mine' ] || fail "stderr has more than the rank's line"

it "--log-dir keeps a byte-exact file per rank and stream"
launch --nodes 2 --log-dir "$scratch/logs" -- \
    sh -c 'echo "out of $RANK"; echo "err of $RANK" >&2'
expect_status 0
job=$(ls "$scratch/logs")
for rank in 0 1; do
    for stream in out err; do
        file=$scratch/logs/$job/attempt-1/rank-$rank.$stream
        [ "$(cat "$file")" = "$stream of $rank" ] || fail "$file is wrong"
    done
done

it "without --log-dir a job that went well leaves no log"
launch --nodes 2 --self-test off -- echo word
expect_nothing_left

it "a log that could not be made is not named"
launch --nodes 1 --self-test off --log-dir "$scratch/gone" -- \
    sh -c "rm -r $scratch/gone; : >$scratch/gone; exit 3"
expect_status 3
expect_last_line 'exited with code 3'
expect_lacks "$err" 'its log'

it "a rank that reads stdin gets end-of-file, not the terminal"
launch --nodes 2 --self-test off -- cat
expect_status 0

it "of failed jobs the newest 20 keep their logs, in the default place only"
logs_of()
{
    find "$1" -mindepth 1 -maxdepth 1 -type d | wc -l
}
for _ in {1..22}; do
    launch --self-test off -q -- false
    expect_status 1
done
[ "$(logs_of "$XDG_STATE_HOME/gpulaunch/logs")" -eq 20 ] || fail "not 20"
for _ in {1..22}; do
    launch --self-test off -q --log-dir "$scratch/all" -- false
done
[ "$(logs_of "$scratch/all")" -eq 22 ] || fail "the user's own are removed"
[ -z "$(find "$scratch/all" -name '.gpulaunch-job')" ] || fail "marked"
forget_logs

done_stories
