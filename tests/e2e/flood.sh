#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A flood of output: byte-exact in the log, and no program grows with it over
# the bounds that docs/operations.md states. In a terminal: terminal.sh.
. "$(dirname "$0")/../lib/e2e.sh"

megabytes=100
bound_seconds=$((60 * slow))

# stdout_has BYTES
stdout_has()
{
    [ "$(stat -c %s "$out")" -eq "$1" ]
}

it "$megabytes MB of random bytes: all of it arrives on stdout"
head -c "${megabytes}000000" /dev/urandom >"$scratch/random"
launch_behind --nodes 2 --no-label --log-dir "$scratch/logs" -- sh -c \
    "[ \$RANK = 1 ] || cat $scratch/random
    until [ -e $scratch/go ]; do sleep 0.05; done"
within "$bound_seconds" "the output did not arrive" \
    stdout_has "${megabytes}000000"

it "no program was ever larger than its bound for two nodes"
expect_memory 2

it "log and stdout are what was written, byte by byte"
touch "$scratch/go"
finish
expect_status 0
log=$(find "$scratch/logs" -name rank-0.out)
[ "$(sha256sum <"$scratch/random")" = "$(sha256sum <"$log")" ] ||
    fail "the log is not what was written"
[ "$(sha256sum <"$scratch/random")" = "$(sha256sum <"$out")" ] ||
    fail "stdout is not what was written"

# logs_rest: nothing has been added for half a second.
logs_rest()
{
    local size
    size=$(du -sb "$scratch/blocked" 2>/dev/null | cut -f1)
    sleep 0.5
    [ "${size:-0}" -gt 1000000 ] &&
        [ "$size" = "$(du -sb "$scratch/blocked" | cut -f1)" ]
}

it "eight ranks and a reader that does not read: every program within its bound"
mkfifo "$scratch/fifo"
exec 8<>"$scratch/fifo"
env --default-signal=INT,QUIT "$mark" "$bin/gpulaunch" --local --nodes 8 \
    --timestamps --log-dir "$scratch/blocked" -- yes >"$scratch/fifo" \
    2>"$err" </dev/null 8>&- &
front_end=$!
within 30 "the ranks were never held up" logs_rest
expect_memory 8

# stop_again: gpulaunch waits for its reader until a signal comes.
stop_again()
{
    kill -TERM "$front_end" 2>/dev/null || true
    is_gone "$front_end"
}
within 30 "gpulaunch did not end" stop_again
status=0
wait "$front_end" || status=$?
expect_status 143
exec 8>&-
expect_no_process

it "a reader of stdout that is slower than the ranks stops nothing and loses nothing"
env "$mark" timeout "$bound_seconds" "$bin/gpulaunch" --local --nodes 1 \
    --no-label -- head -c 20000000 /dev/zero 2>"$err" </dev/null |
    { sleep 1; wc -c; } >"$out"
expect_out 20000000
expect_nothing_left

done_stories
