#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What a person sees on a terminal, through tmux.
. "$(dirname "$0")/../lib/e2e.sh"

command -v tmux >/dev/null || skip "tmux is not installed"

terminal=(tmux -S "$scratch/tmux" -f /dev/null)

# on_terminal SHELL_LINE: in a terminal of 80 x 24; ends with a line "ended N".
# The shell around it outlives a Ctrl-C.
on_terminal()
{
    env "$mark" "${terminal[@]}" new-session -d -x 80 -y 24 \
        "sh -c 'trap : INT; $1; echo ended \$?; exec sleep 300'"
}

screen()
{
    "${terminal[@]}" capture-pane -p
}

screen_says()
{
    screen >"$out" && grep -qE -- "$1" "$out"
}

# A new terminal must not find the server of the last one on its way out.
close_terminal()
{
    local server

    server=$("${terminal[@]}" display-message -p '#{pid}')
    "${terminal[@]}" kill-server
    within 10 "tmux did not end" is_gone "$server"
}

# speakers TEXT: the ranks of the lines that are this, unfolded.
speakers()
{
    sed -nE "s/^\\[([0-9,-]+)\\] $1\$/\\1/p" "$out" | tr ',' '\n' |
        awk -F- '{ for (i = $1; i <= $NF; i++) print i }' | sort -n | xargs
}

# are_heard TEXT RANKS: on the screen.
are_heard()
{
    screen >"$out" && [ "$(speakers "$1")" = "$2" ]
}

it "progress while it runs, the table, the ranks' lines, and a clean end"
on_terminal "$bin/gpulaunch --local --nodes 4 -- sh -c \"echo from rank\""
within 20 "the job did not end" screen_says '^ended 0'
expect_has "$out" 'self-test passed'
expect_has "$out" 'busbw'
[ "$(speakers 'from rank')" = '0 1 2 3' ] || fail "not every rank is heard"
[ "$(awk '{ if (length > most) most = length } END { print most }' \
    "$out")" -le 80 ] || fail "a line is wider than the terminal"
close_terminal

it "who is missing is shown while it is waited for"
bad_node 'exec sleep 300'
on_terminal "$scratch/bin/gpulaunch --local --nodes 3 -- true"
within 10 "the missing node is not shown" screen_says 'local-1'
expect_has "$out" '2.*3'

it "Ctrl-C ends the job, and the terminal is left clean"
"${terminal[@]}" send-keys C-c
within 20 "the job did not end" screen_says '^ended 130'
close_terminal
expect_nothing_left 5

# A shell with job control; keys are typed into it.
open_shell()
{
    env "$mark" "${terminal[@]}" new-session -d -x 80 -y 24 \
        "PS1='prompt ' HISTFILE= exec bash --norc --noprofile"
    within 10 "no shell came up" screen_says '^prompt'
}

type_line()
{
    "${terminal[@]}" send-keys -l "$1"
    "${terminal[@]}" send-keys Enter
}

# What is typed now goes to gpulaunch.
is_in_foreground()
{
    # shellcheck disable=SC2046  # two words
    set -- $(ps -o tpgid=,pgid= -p "$(pids_of gpulaunch)")
    [ "$1" = "$2" ]
}

# Ranks that say each line that they read.
echoing="sh -c 'echo \$\$ >$scratch/pid.\$RANK; echo up \$RANK
    while read line; do echo \"have \$line\"; done; echo over'"

it "what is typed reaches rank 0; Ctrl-Z stops the ranks and gpulaunch"
open_shell
type_line "$bin/gpulaunch --local --nodes 2 --self-test off -- $echoing"
within 20 "rank 0 did not come up" screen_says '^\[0\] up 0'
within 20 "rank 1 did not read to its end" screen_says '^\[1\] over'
type_line 'one'
within 10 "rank 0 did not read" screen_says '^\[0\] have one'
"${terminal[@]}" send-keys C-z
within 10 "the shell was not told" screen_says '^\[1\]\+ +Stopped'
rank_state()
{
    [ "$(ps -o state= -p "$(cat "$scratch/pid.0")")" = "$1" ]
}
within 10 "rank 0 did not stop" rank_state T

it "in the background it leaves the terminal to the shell"
type_line 'bg'
within 10 "rank 0 does not go on" rank_state S
type_line 'echo for the shell'
within 10 "the shell did not get its line" screen_says '^for the shell'
type_line 'clear; jobs'
within 10 "it was stopped" screen_says '^\[1\]\+ +Running'
expect_lacks "$out" '^\[0\] have'

it "back in the foreground it reads on, to the end of the input"
type_line 'fg'
within 10 "it is not in the foreground" is_in_foreground
type_line 'two'
within 10 "rank 0 did not read on" screen_says '^\[0\] have two'
"${terminal[@]}" send-keys C-d
within 10 "the input did not end" screen_says '^\[0\] over'
type_line "echo ended \$?"
within 10 "the job did not end well" screen_says '^ended 0'

it "started in the background it does not stop for want of the terminal"
type_line "clear; $bin/gpulaunch --local --self-test off -- $echoing &"
within 20 "rank 0 did not come up" screen_says '(^|prompt )up 0$'
sleep 0.7
type_line 'jobs'
within 10 "it was stopped" screen_says '^\[1\]\+ +Running'
type_line 'fg'
within 10 "it is not in the foreground" is_in_foreground
type_line 'three'
within 10 "rank 0 did not read" screen_says '^have three'

it "a terminal that is closed ends the job"
close_terminal
expect_no_process 10
forget_logs
expect_nothing_left

it "a sentence that is wider than the terminal is broken between words"
echo 'node local-* gpus 2' >"$scratch/scenario"
on_terminal "GPULAUNCH_DOUBLE_SCENARIO=$scratch/scenario \
    LD_LIBRARY_PATH=$bin/../tests/doubles $bin/gpulaunch --local --nodes 4 \
    --backend nccl --minbytes 8 --maxbytes 8 -- true"
within 20 "the job did not end" screen_says '^ended 0'
expect_has "$out" '^gpulaunch: SIMULATED libraries: local-'
expect_has "$out" '^gpulaunch:   [^ ]'
expect_has "$out" '(^gpulaunch:  | )NVIDIA( |$)'
close_terminal

cat >"$scratch/train.sh" <<'RANK'
printf '\033[2J\033[H\033]0;owned\a\033[?1049hloss of %s \033[31mred\n' "$RANK"
printf 'plain\n'
printf '\r 10%%|#   | rank %s\r 50%%|##  | rank %s' "$RANK" "$RANK" >&2
until [ -e "$1" ]; do sleep 0.05; done
printf '\r100%%|####| rank %s\n' "$RANK" >&2
RANK

it "several ranks: nothing that one writes harms the lines of the others"
on_terminal "$bin/gpulaunch --local --nodes 3 --self-test off -- \
    sh $scratch/train.sh $scratch/bars-go"
within 20 "not all ranks are heard" are_heard plain '0 1 2'
for rank in 0 1 2; do
    within 20 "rank $rank is not heard" screen_says \
        "^\\[$rank\\] loss of $rank red\$"
done
"${terminal[@]}" capture-pane -p -e >"$out"
[ "$(grep -c $'\033\\[31mred' "$out")" -eq 3 ] ||
    fail "a colour runs on into other lines"

it "bars of several ranks are one line until they end, then a line each"
within 20 "the other bars are not counted" screen_says \
    '^\[0\]  50%\|##  \| rank 0  \+2 more *$'
[ "$(grep -c '%' "$out")" -eq 1 ] || fail "there is more than one line of bars"
touch "$scratch/bars-go"
within 20 "the job did not end" screen_says '^ended 0'
for rank in 0 1 2; do
    expect_has "$out" "^\\[$rank\\] 100%\\|####\\| rank $rank\$"
done
[ "$(grep -c '%' "$out")" -eq 3 ] || fail "an update of a bar is left"
close_terminal

it "one rank alone: its escape sequences are its own business"
on_terminal "$bin/gpulaunch --local --nodes 3 --ranks 1 --self-test off -- \
    printf \"wrong\\rright\\033[K\\n\""
within 20 "the job did not end" screen_says '^ended 0'
expect_has "$out" '^right$'
close_terminal

# logged MEGABYTES: so much has been written to the logs.
logged()
{
    local size
    size=$(du -sm "$scratch/flood" 2>/dev/null | cut -f1)
    [ "${size:-0}" -ge "$1" ]
}

it "eight ranks as fast as they can: every program within its bound"
on_terminal "$bin/gpulaunch --local --nodes 8 --grace 5s --self-test off \
    --log-dir $scratch/flood -- seq 1 1000000000"
within 60 "the ranks do not write" logged 20
expect_memory 8

it "... Ctrl-C ends it within the grace, and the end is seen"
start=$(now_ms)
"${terminal[@]}" send-keys C-c
within 10 "the job did not end" screen_says '^ended 130'
took_ms=$(($(now_ms) - start))
echo "ended $took_ms ms after Ctrl-C"
expect_within_ms 5000
expect_has "$out" 'canceled by signal 2'
close_terminal
expect_no_process 5

it "... and the logs are what was written, byte by byte"
for rank in 0 1 2 3 4 5 6 7; do
    log=$(find "$scratch/flood" -name "rank-$rank.out")
    size=$(stat -c %s "$log")
    cmp -n "$size" "$log" <(seq 1 1000000000) ||
        fail "the log of rank $rank is not what it wrote"
done
rm -rf "$scratch/flood"

it "--color never writes no escape sequence; neither does a pipe"
launch --nodes 2 --color never -- true
! grep -q $'\033' "$err" || fail "an escape sequence is on stderr"
launch --nodes 2 -- true
! grep -q $'\033' "$err" || fail "an escape sequence is on stderr"

done_stories
