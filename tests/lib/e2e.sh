# SPDX-License-Identifier: Apache-2.0
#
# The end-to-end tests' small library: run the real programs under a bound,
# and say what must be true afterwards. Sourced by tests/e2e and
# tests/frameworks; ctest gives GPULAUNCH_TEST_BIN, the programs' folder.
#
# Every run lives in a scratch folder of its own (HOME, TMPDIR, XDG_*) and
# carries a mark in its environment that all its processes inherit, so that
# "nothing is left" can be seen in /proc and on disk, whatever else runs on
# the machine. Programs that hold a secret show their environment to root only;
# for others they carry a second mark: a limit that Linux does not heed.
# shellcheck shell=bash
# shellcheck disable=SC2034  # variables for the scripts that source this
set -euo pipefail

# Libraries on top of this one source it too.
[ "${e2e_library-}" != $$ ] || return 0
e2e_library=$$

project=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
bin=${GPULAUNCH_TEST_BIN:-$project/build/dev/bin}
# Time limits and repetitions are written for an optimised build; ctest raises
# this for the sanitizers'.
slow=${GPULAUNCH_TEST_SLOW:-1}
processors=$(nproc)
python=/usr/bin/python3

scratch=$(mktemp -d)
mark=E2E_MARK=$$.$RANDOM
limit_mark=$((($$ * 32768 + RANDOM) * 1024))
ulimit -Sm $((limit_mark / 1024))
out=$scratch/stdout
err=$scratch/stderr
bound_seconds=60
story="(before the first story)"
stories=0
failure=

# The caller's own settings must not leak in.
while IFS= read -r name; do
    unset "$name"
done < <(compgen -e | grep -E '^(GPULAUNCH_|SLURM_|PMI|OMPI_|PET_|XDG_)')
unset NO_COLOR TF_CONFIG RANK WORLD_SIZE MASTER_ADDR MASTER_PORT
export HOME=$scratch/home TMPDIR=$scratch/tmp
export XDG_STATE_HOME=$scratch/state XDG_RUNTIME_DIR=$scratch/runtime
mkdir -m 700 "$HOME" "$TMPDIR" "$XDG_STATE_HOME" "$XDG_RUNTIME_DIR"

# What a sanitizer has to say of any program becomes a file, and a failure.
export ASAN_OPTIONS=log_path=$scratch/sanitizer
export UBSAN_OPTIONS=log_path=$scratch/sanitizer:print_stacktrace=1

# hidden_pids: processes of this test whose environment cannot be read, though
# they have memory still: one that is ending has none.
hidden_pids()
{
    local file pid

    { grep -lE "^Max resident set +$limit_mark " /proc/[0-9]*/limits \
        2>/dev/null || true; } |
        while IFS= read -r file; do
            pid=${file#/proc/}
            pid=${pid%/limits}
            if ! [ -r "/proc/$pid/environ" ] &&
                grep -qs '^VmSize:' "/proc/$pid/status"; then
                echo "$pid"
            fi
        done
}

# Pids that carry this test's mark. A zombie has no environment and does not
# count; the shell that asks does not carry the mark.
marked_pids()
{
    { grep -lzxF "$mark" /proc/[0-9]*/environ 2>/dev/null || true; } |
        cut -d/ -f3
    if [ "$EUID" -ne 0 ]; then
        hidden_pids
    fi
}

clean_up()
{
    local code=$? pid

    if [ "$code" -ne 0 ] && [ "$code" -ne 77 ] && [ -z "$failure" ]; then
        echo "FAILED: $story: a command of the script failed"
    fi

    for pid in $(marked_pids); do
        kill -KILL "$pid" 2>/dev/null || true
    done
    if mountpoint -q "$scratch/small" 2>/dev/null; then
        umount "$scratch/small"
    fi
    rm -rf "$scratch"
}
trap clean_up EXIT

skip()
{
    echo "skipped: $*"
    exit 77
}

# it SENTENCE: what the lines that follow must show.
it()
{
    story=$*
    stories=$((stories + 1))
}

fail()
{
    failure=$*
    echo "FAILED: $story"
    echo "  $failure"
    if [ -s "$out" ]; then
        echo "--- stdout (end)"
        tail -c 2000 "$out"
    fi
    if [ -s "$err" ]; then
        echo "--- stderr (end)"
        tail -c 4000 "$err"
    fi
    exit 1
}

# done_stories: the last line of every test file.
done_stories()
{
    local report

    for report in "$scratch"/sanitizer.*; do
        [ ! -e "$report" ] || fail "a sanitizer reports: $(cat "$report")"
    done
    echo "$stories stories hold"
}

now_ms()
{
    echo "$((${EPOCHREALTIME/[.,]/} / 1000))"
}

# run PROGRAM ARGUMENT...: to its end, or to bound_seconds, with patience. Sets
# status and took_ms; stdout and stderr are in $out and $err.
run()
{
    local start bound

    bound=$((bound_seconds * $(patience)))
    start=$(now_ms)
    status=0
    env "$mark" timeout --kill-after=5 "$bound" "$@" \
        >"$out" 2>"$err" </dev/null || status=$?
    took_ms=$(($(now_ms) - start))
}

# launch ARGUMENT...: gpulaunch --local with these.
launch()
{
    run "$bin/gpulaunch" --local "$@"
}

# bad_node COMMAND: puts copies of the programs into $scratch/bin, where the
# worker of local-1 is COMMAND and all other workers are real.
bad_node()
{
    local folder=$scratch/bin

    mkdir -p "$folder"
    cp "$bin/gpulaunch" "$bin/gpulaunch-coordinator" "$folder"
    cat >"$folder/gpulaunch-worker" <<SCRIPT
#!/bin/sh
case " \$* " in
*" local-1 "*) $1 ;;
esac
exec "$bin/gpulaunch-worker" "\$@"
SCRIPT
    chmod +x "$folder/gpulaunch-worker"
}

# run_behind PROGRAM ARGUMENT...: like `run` without waiting. Sets front_end;
# to be followed by `finish`. A shell starts what runs behind with SIGINT
# ignored, which gpulaunch respects, so that is undone; and it opens the files
# some time later, when what another run wrote must not be in them any more.
run_behind()
{
    : >"$out"
    : >"$err"
    env --default-signal=INT,QUIT "$mark" "$@" >"$out" 2>"$err" </dev/null &
    front_end=$!
}

# launch_behind ARGUMENT...: gpulaunch --local with these, without waiting.
launch_behind()
{
    run_behind "$bin/gpulaunch" --local "$@"
}

# finish: wait for what run_behind started, within bound_seconds.
finish()
{
    within "$bound_seconds" "gpulaunch did not end" is_gone "$front_end"
    status=0
    wait "$front_end" || status=$?
}

# Has this child ended? A child that ended but was not waited for is a zombie.
is_gone()
{
    local state

    state=$(ps -o state= -p "$1" 2>/dev/null || true)
    [ -z "$state" ] || [ "$state" = Z ]
}

# patience: what time limits are multiplied by: how slow the build is, and how
# many processes there are for each processor, since a promise in seconds is one
# for a machine that has time for the program.
patience()
{
    local load tasks busy

    read -r load _ _ tasks _ </proc/loadavg
    busy=${load%.*}
    [ "${tasks%/*}" -le "$busy" ] || busy=${tasks%/*}
    busy=$((busy / processors))
    [ "$busy" -ge 1 ] || busy=1
    echo "$((slow * busy))"
}

# is_over START_MS SECONDS: has it been so long, with patience?
is_over()
{
    local took=$(($(now_ms) - $1))

    [ "$took" -ge "$(($2 * 1000))" ] &&
        [ "$took" -ge "$(($2 * 1000 * $(patience)))" ]
}

# within SECONDS COMPLAINT COMMAND...: the command comes true in time.
within()
{
    local start seconds=$1 complaint=$2

    start=$(now_ms)
    shift 2
    until "$@"; do
        ! is_over "$start" "$seconds" || fail "$complaint"
        sleep 0.02
    done
}

# pids_of PROGRAM: marked processes whose command's name is that.
pids_of()
{
    local pid path

    for pid in $(marked_pids); do
        path=$(readlink "/proc/$pid/exe") ||
            path=$({ tr '\0' '\n' <"/proc/$pid/cmdline"; } 2>/dev/null |
                head -n 1)
        if [ "$(basename "$path")" = "$1" ]; then
            echo "$pid"
        fi
    done
}

# expect_memory NODES: no program of a job of so many nodes was ever larger
# than its bound (docs/operations.md, "Memory"). A sanitizer keeps up to
# 256 MiB that were freed, and shadows all of it.
expect_memory()
{
    local name pid pids kib limit windows=$((1024 * $1))
    local extra=$((slow > 1 ? 512 * 1024 : 0))

    for name in gpulaunch gpulaunch-coordinator gpulaunch-worker; do
        case $name in
        gpulaunch) limit=$((windows + 12 * 1024)) ;;
        gpulaunch-coordinator) limit=$((windows + 8 * 1024)) ;;
        *) limit=$((8 * 1024)) ;;
        esac
        pids=$(pids_of "$name")
        [ -n "$pids" ] || fail "$name was not seen"
        for pid in $pids; do
            kib=$(awk '/^VmHWM:/ { print $2 }' "/proc/$pid/status")
            echo "$name: $kib KiB at most, bound $limit KiB"
            [ "$kib" -le "$((limit + extra))" ] || fail "$name grew to $kib KiB"
        done
    done
}

# worker_of NODE NAME: the pid of the process of the node's worker that calls
# itself NAME.
worker_of()
{
    local pid

    for pid in $(pids_of gpulaunch-worker); do
        if { tr '\0' ' ' <"/proc/$pid/cmdline"; } 2>/dev/null | grep -q " $1 " &&
            [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = "$2" ]; then
            echo "$pid"
        fi
    done
}

keeper_of()
{
    worker_of "$1" gpulaunch-keepe
}

agent_of()
{
    worker_of "$1" gpulaunch-agent
}

# log_of RANK out|err: its log file of the first attempt below $scratch/logs.
log_of()
{
    find "$scratch/logs" -path "*/attempt-1/rank-$1.$2" 2>/dev/null
}

expect_status()
{
    [ "$status" -eq "$1" ] || fail "exit code is $status, not $1"
}

expect_within_ms()
{
    local limit=$1

    [ "$took_ms" -gt "$limit" ] || return 0
    limit=$((limit * $(patience)))
    [ "$took_ms" -le "$limit" ] ||
        fail "took $took_ms ms, not $limit at most"
}

# expect_out TEXT: stdout is exactly this (one newline is added).
expect_out()
{
    [ "$(cat "$out")" = "$1" ] || fail "stdout is not: $1"
}

expect_has()
{
    grep -qE -- "$2" "$1" || fail "${1##*/} does not say: $2"
}

expect_lacks()
{
    ! grep -qE -- "$2" "$1" || fail "${1##*/} says: $2"
}

expect_empty()
{
    [ ! -s "$1" ] || fail "${1##*/} is not empty"
}

expect_lines()
{
    [ "$(wc -l <"$1")" -eq "$2" ] ||
        fail "${1##*/} has $(wc -l <"$1") lines, not $2"
}

# expect_last_line REGEX: of stderr; what every failure ends with.
expect_last_line()
{
    tail -n 1 "$err" | grep -qE -- "$1" ||
        fail "the last line on stderr does not say: $1"
}

# expect_json FILE EXPRESSION: true in Python, with the parsed file as `r`.
expect_json()
{
    "$python" - "$1" "$2" <<'PY' || fail "${1##*/}: not true: $2"
import json
import sys

with open(sys.argv[1]) as file:
    r = json.load(file)
sys.exit(0 if eval(f"({sys.argv[2]})", {"r": r}) else 1)
PY
}

no_process_left()
{
    [ -z "$(marked_pids)" ]
}

# What is left, for people.
describe_left()
{
    local pid

    for pid in $(marked_pids); do
        printf '%s (%s) ' "$(tr '\0' ' ' <"/proc/$pid/cmdline")" "$pid"
    done
}

# expect_no_process [SECONDS]: none of the run's processes is alive, and so no
# socket of it open; without SECONDS it must be so already.
expect_no_process()
{
    local start

    start=$(now_ms)
    until no_process_left; do
        ! is_over "$start" "${1:-0}" ||
            fail "processes are left: $(describe_left 2>&1)"
        sleep 0.02
    done
}

# expect_nothing_left [SECONDS]: no process, and no file in any folder that
# gpulaunch may write to unasked.
expect_nothing_left()
{
    local left

    expect_no_process "$@"
    left=$(find "$TMPDIR" "$XDG_RUNTIME_DIR" "$XDG_STATE_HOME" "$HOME" \
        -mindepth 1 ! -path "$XDG_STATE_HOME/gpulaunch" \
        ! -path "$XDG_STATE_HOME/gpulaunch/logs")
    [ -z "$left" ] || fail "files are left: $left"
}

# forget_logs: of failures that have been looked at.
forget_logs()
{
    rm -rf "$XDG_STATE_HOME/gpulaunch"
}
