#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A flood of output: byte-exact in the log, and no program grows with it.
. "$(dirname "$0")/../lib/e2e.sh"

megabytes=100
bound_seconds=$((60 * slow))
limit_kib=$((64 * 1024 * (slow > 1 ? 8 : 1)))

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

it "no program was ever larger than $((limit_kib / 1024)) MiB"
for name in gpulaunch gpulaunch-coordinator gpulaunch-worker; do
    pids=$(pids_of "$name")
    [ -n "$pids" ] || fail "$name was not seen"
    for pid in $pids; do
        kib=$(awk '/^VmHWM:/ { print $2 }' "/proc/$pid/status")
        echo "$name: $kib KiB at most"
        [ "$kib" -le "$limit_kib" ] || fail "$name grew to $kib KiB"
    done
done

it "log and stdout are what was written, byte by byte"
touch "$scratch/go"
finish
expect_status 0
log=$(find "$scratch/logs" -name rank-0.out)
[ "$(sha256sum <"$scratch/random")" = "$(sha256sum <"$log")" ] ||
    fail "the log is not what was written"
[ "$(sha256sum <"$scratch/random")" = "$(sha256sum <"$out")" ] ||
    fail "stdout is not what was written"

it "a reader of stdout that is slower than the ranks stops nothing and loses nothing"
env "$mark" timeout "$bound_seconds" "$bin/gpulaunch" --local --nodes 1 \
    --no-label -- head -c 20000000 /dev/zero 2>"$err" </dev/null |
    { sleep 1; wc -c; } >"$out"
expect_out 20000000
expect_nothing_left

done_stories
