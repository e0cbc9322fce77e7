#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A command that cannot be executed is reported exactly, at once.
. "$(dirname "$0")/../lib/e2e.sh"

# cannot_run CODE TEXT COMMAND...: exit code within 2 s, and the last line
# with the path and the system's words. The self-test is off: what is timed is
# the launch.
cannot_run()
{
    local code=$1 text=$2
    shift 2

    launch --nodes 3 --self-test off -- "$@"
    expect_status "$code"
    expect_within_ms 2000
    expect_last_line "$text"
    expect_last_line "$(hostname)|local-[0-2]"
    forget_logs
    expect_nothing_left
}

it "a command that is not there: 127"
cannot_run 127 '"no-such-command" not found in PATH' no-such-command --with arguments

it "a path that is not there: 127"
cannot_run 127 '/no/such/program.*No such file' /no/such/program

it "a file that may not be executed: 126"
echo 'exit 0' >"$scratch/plain"
cannot_run 126 'plain.*Permission denied' "$scratch/plain"

it "a folder: 126"
cannot_run 126 'Permission denied|Is a directory' "$scratch"

it "a script whose interpreter is not there: 126, and the interpreter is named"
printf '#!/no/such/interpreter\n' >"$scratch/script"
chmod +x "$scratch/script"
cannot_run 126 'script: its interpreter /no/such/interpreter does not exist' "$scratch/script"

it "a program for another processor: 126"
# An ELF header of a 64-bit executable for machine 0x1234.
printf '\177ELF\2\1\1\0\0\0\0\0\0\0\0\0\2\0\064\022\1\0\0\0%s' \
    "$(printf '%080d' 0)" >"$scratch/foreign"
chmod +x "$scratch/foreign"
cannot_run 126 'foreign: neither a program for this machine nor a script' "$scratch/foreign"

it "no descriptors for the pipes of all ranks: 125, and what to raise"
(
    ulimit -n 64
    launch --per-node 100 --self-test off -- true
    expect_status 125
    expect_last_line '(pipe for a rank|for a rank.s start): Too many open files; raise ulimit -n'
)
forget_logs
expect_nothing_left

done_stories
