#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# An allocation fails, another one in each run, in each of the programs: the
# run ends within its time, says that it was for memory, and leaves nothing. Or
# it does without.
source "$(dirname "$0")/../lib/e2e.sh"

preload=$(dirname "$bin")/tests/failalloc.so
[ -e "$preload" ] || fail "$preload is missing"
! grep -q __asan_init "$bin/gpulaunch" ||
    skip "the address sanitizer brings its own allocator with it"
bound_seconds=60

# try PROGRAM N ARGUMENT...: a run in which the N-th allocation of the program,
# as ps names it, fails; false if it has fewer.
try()
{
    local program=$1 at=$2

    shift 2
    rm -f "$scratch/mark"
    run env LD_PRELOAD="$preload" FAILALLOC_NAME="$program" \
        FAILALLOC_AT="$at" FAILALLOC_MARK="$scratch/mark" \
        "$bin/gpulaunch" --local --nodes 2 --quiet "$@"
    [ -e "$scratch/mark" ]
}

# judge GOOD: it ended as without the failure, or for want of memory. OpenSSL
# may be unable for good to do what it once had no memory for, and not say so:
# then nodes are missing when the time to join is over.
judge()
{
    case $status in
    "$1") ;;
    125) expect_last_line 'memory' ;;
    20) expect_last_line 'memory|it ended with exit code 125' ;; # a probe
    41 | 75) expect_last_line 'memory' ;;
    40) expect_last_line 'memory|joined within 6 s|within 6 s: the coordinator' ;;
    *) fail "exit code $status" ;;
    esac
    expect_no_process 10
}

# each PROGRAM GOOD FIRST STEP ARGUMENT...: at every STEP-th allocation.
each()
{
    local program=$1 good=$2 at=$3 step=$4 tried=0

    shift 4
    while try "$program" "$at" "$@"; do
        story="$wanted (allocation $at of $program)"
        judge "$good"
        at=$((at + step))
        tried=$((tried + 1))
    done
    [ "$status" -eq "$good" ] || fail "exit code $status without a failure"
    echo "$program: $tried of $at allocations failed"
    [ "$tried" -ge 3 ] || fail "$program was not met"
}

wanted="join, run and stop without TLS: every allocation"
it "$wanted"
for program in gpulaunch gpulaunch-coord gpulaunch-agent; do
    # shellcheck disable=SC2016  # for the rank's shell
    each "$program" 3 1 1 --insecure --self-test off --grace 2s -- \
        sh -c 'echo "rank $RANK"; [ "$RANK" = 0 ] || exit 3; exec sleep 60'
done

wanted="the self-test: agents, and their probes"
it "$wanted"
each gpulaunch-agent 0 3 9 --insecure --maxbytes 64K --iters 2 -- true
each gpulaunch-worke 0 1 1 --insecure --maxbytes 64K --iters 2 -- true

# OpenSSL makes thousands, most of them alike.
wanted="join, run and stop with TLS: allocations all over"
it "$wanted"
for program in gpulaunch gpulaunch-coord gpulaunch-agent; do
    each "$program" 0 42 397 --self-test off --join-timeout 6s -- true
done

# Logs of jobs that failed; without memory for the one place, in the other.
forget_logs
rm -rf "$TMPDIR/gpulaunch-$(id -u)"
expect_nothing_left
done_stories
