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

close_terminal()
{
    "${terminal[@]}" kill-server
}

it "progress while it runs, the table, the ranks' lines, and a clean end"
on_terminal "$bin/gpulaunch --local --nodes 4 -- sh -c \"echo from rank\""
within 20 "the job did not end" screen_says '^ended 0'
expect_has "$out" 'self-test passed'
expect_has "$out" 'busbw'
expect_has "$out" '\[3\] from rank'
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

it "--color never writes no escape sequence; neither does a pipe"
launch --nodes 2 --color never -- true
! grep -q $'\033' "$err" || fail "an escape sequence is on stderr"
launch --nodes 2 -- true
! grep -q $'\033' "$err" || fail "an escape sequence is on stderr"

done_stories
