#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A full disk under the logs: the ranks and their output on the terminal do
# not suffer, and the user is told once.
. "$(dirname "$0")/../lib/e2e.sh"

mkdir "$scratch/small"
mount -t tmpfs -o size=1m tmpfs "$scratch/small" 2>/dev/null ||
    skip "a file system cannot be mounted here"

it "a log that outgrows its disk: the job ends with 0, stdout is whole, a line says so"
launch --nodes 2 --no-label --log-dir "$scratch/small/logs" -- \
    sh -c '[ $RANK = 1 ] || head -c 5000000 /dev/zero'
expect_status 0
[ "$(stat -c %s "$out")" -eq 5000000 ] || fail "stdout is not whole"
expect_has "$err" 'No space left on device'
expect_has "$err" "$scratch/small/logs"

it "a log directory on a disk that is full already: refused before anything starts"
rm -rf "$scratch/small/logs"
head -c 2000000 /dev/zero >"$scratch/small/full" 2>/dev/null || true
launch --nodes 2 --log-dir "$scratch/small/logs" -- \
    touch "$scratch/witness"
expect_status 125
expect_last_line 'No space left on device'
[ ! -e "$scratch/witness" ] || fail "the command was started"

it "the default place for logs on such a disk: the next place is taken"
XDG_STATE_HOME=$scratch/small/state launch --nodes 1 --self-test off -- \
    sh -c 'exit 3'
expect_status 3
expect_last_line "its log: $TMPDIR/gpulaunch-.*/rank-0\.err"

it "a result for a disk that is full already: the same"
launch --nodes 1 --result "$scratch/small/r.json" -- touch "$scratch/witness"
expect_status 125
expect_last_line 'r\.json.*No space left on device'
[ ! -e "$scratch/witness" ] || fail "the command was started"

it "a stdout that is full ends the job: output is not lost in silence"
status=0
env "$mark" timeout 30 "$bin/gpulaunch" --local --nodes 1 --self-test off \
    --no-label -- head -c 100000 /dev/zero >/dev/full 2>"$err" </dev/null ||
    status=$?
expect_status 125
expect_last_line 'No space left on device'

# with_full_tmp ASSIGNMENTS ARGUMENT...: gpulaunch --local with these, in a mount
# namespace of its own where /tmp is a full file system of 1 MiB, and this test's
# folder is /mnt.
with_full_tmp()
{
    run unshare --mount -- sh -c '
        mount --bind "$1" /mnt && mount -t tmpfs -o size=1m tmpfs /tmp || exit 99
        head -c 2000000 /dev/zero >/tmp/full 2>/dev/null
        shift
        exec env TMPDIR=/tmp "$@"' sh "$scratch" "$@"
}

it "/tmp is full: the job runs, self-test included, and its logs are elsewhere"
with_full_tmp HOME=/mnt/home XDG_STATE_HOME=/mnt/state XDG_RUNTIME_DIR=/mnt/runtime \
    "$bin/gpulaunch" --local --nodes 2 --log-dir /mnt/logs -- \
    sh -c 'echo "out of $RANK"'
expect_status 0
for rank in 0 1; do
    expect_has "$out" "out of $rank"
    [ "$(cat "$(log_of "$rank" out)")" = "out of $rank" ] ||
        fail "the log of rank $rank is not what it wrote"
done
expect_no_process
rm -r "$scratch/logs"

it "/tmp is full and there is no other place: refused before anything starts"
with_full_tmp HOME=/tmp/home XDG_STATE_HOME= XDG_RUNTIME_DIR= \
    "$bin/gpulaunch" --local --nodes 2 -- touch /mnt/witness
expect_status 125
expect_last_line 'No space left on device'
[ ! -e "$scratch/witness" ] || fail "the command was started"
expect_no_process

done_stories
