#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What the caller hands down - blocked and ignored signals, limits, a standard
# output that takes nothing - neither stops the job nor is lost in silence.
. "$(dirname "$0")/../lib/e2e.sh"

# with_signals ACTION NAMES PROGRAM...: these signals blocked or ignored.
cat >"$scratch/with_signals" <<'PY'
import os
import signal
import sys

numbers = [getattr(signal, "SIG" + name) for name in sys.argv[2].split(",")]
if sys.argv[1] == "block":
    signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
else:
    for number in numbers:
        signal.signal(number, signal.SIG_IGN)
os.execv(sys.argv[3], sys.argv[3:])
PY

for action in block ignore; do
    it "$action SIGCHLD: the job ends as soon as its ranks, exit codes arrive"
    run "$python" "$scratch/with_signals" $action CHLD "$bin/gpulaunch" \
        --local --nodes 2 --self-test off -q -- sh -c 'exit $((RANK * 3))'
    expect_status 3
    expect_within_ms 10000
    expect_lines "$err" 1
    forget_logs
    expect_nothing_left
done

it "signals that the caller blocked still end the job"
run_behind "$python" "$scratch/with_signals" block INT,TERM,HUP \
    "$bin/gpulaunch" --local --nodes 2 --self-test off -- \
    sh -c ": >$scratch/up.\$RANK; exec sleep 300"
both_are_up()
{
    [ -e "$scratch/up.0" ] && [ -e "$scratch/up.1" ]
}
within 20 "the ranks did not come up" both_are_up
kill -TERM "$front_end"
finish
expect_status 143
forget_logs
expect_nothing_left

it "ranks start with no signal blocked or ignored, whatever the caller did"
run "$python" "$scratch/with_signals" block CHLD,TERM,PIPE "$bin/gpulaunch" \
    --local --nodes 1 --self-test off -- \
    grep -E '^Sig(Blk|Ign)' /proc/self/status
expect_out "$(printf 'SigBlk:\t%016d\nSigIgn:\t%016d' 0 0)"

# into FILE ARGUMENT...: like launch, with this standard output.
into()
{
    local file=$1
    shift

    status=0
    : >"$out"
    env "$mark" timeout --kill-after=5 "$bound_seconds" "$bin/gpulaunch" "$@" \
        >"$file" 2>"$err" </dev/null || status=$?
}

for words in '--local --json -- true' '--local --dry-run -- true' \
    '--local --dry-run --json -- true' 'env --local --rank 0 -- true' \
    '--local --nodes 2 -- printf hi' '--local --nodes 1 -- printf hi' \
    '--help' '--version'; do
    it "gpulaunch $words >/dev/full: 125, and the last line says why"
    # shellcheck disable=SC2086  # several words
    into /dev/full $words
    expect_status 125
    expect_last_line 'standard output.*No space left on device'
    forget_logs
    expect_nothing_left
done

it "the result file of a job whose standard output was lost says so"
into /dev/full --local --json --result "$scratch/r.json" -- true
expect_status 125
expect_json "$scratch/r.json" \
    'r["exit_code"] == 125 and "No space left" in r["message"]'
forget_logs

it "a job that failed keeps its exit code without standard output"
into /dev/full --local --json -- sh -c 'exit 7'
expect_status 7
expect_has "$err" 'cannot write to standard output: No space left on device'
expect_last_line 'exited with code 7'
forget_logs

# A pipe without a reader, from the start.
nobody_reads()
{
    local words=("$@")

    mkfifo "$scratch/fifo"
    exec 8<>"$scratch/fifo"
    exec 9>"$scratch/fifo"
    exec 8<&-
    rm "$scratch/fifo"
    status=0
    env "$mark" timeout --kill-after=5 "$bound_seconds" "$bin/gpulaunch" \
        "${words[@]}" >&9 2>"$err" </dev/null || status=$?
    exec 9>&-
}

for words in '--local --json -- true' '--local --dry-run -- true' \
    'env --local --rank 0 -- true' '--local --nodes 2 -- printf hi' \
    '--help'; do
    it "gpulaunch $words, and nobody reads it: 141, as everywhere"
    # shellcheck disable=SC2086  # several words
    nobody_reads $words
    expect_status 141
    forget_logs
    expect_nothing_left
done

for program in gpulaunch-coordinator gpulaunch-worker; do
    for flag in --help --version; do
        it "$program $flag >/dev/full: 125, and a line"
        status=0
        "$bin/$program" $flag >/dev/full 2>"$err" || status=$?
        expect_status 125
        expect_last_line 'standard output: No space left on device'
    done
done

it "a limit on file sizes ends no program of ours: the log ends, a line says so"
status=0
(
    ulimit -f 8
    exec env "$mark" timeout --kill-after=5 "$bound_seconds" \
        "$bin/gpulaunch" --local --nodes 1 --self-test off \
        --log-dir "$scratch/logs" -- head -c 100000 /dev/zero \
        2>"$err" </dev/null
) | wc -c >"$out" || status=$?
expect_status 0
expect_out 100000
expect_has "$err" 'File too large'
expect_no_process

it "a coordinator that ends at once: its exit code and its words are said"
bad_node 'exec sleep 300'
printf '#!/bin/sh\necho no luck today >&2\nexit 3\n' \
    >"$scratch/bin/gpulaunch-coordinator"
run "$scratch/bin/gpulaunch" --local --nodes 2 -- true
expect_status 75
expect_last_line \
    'coordinator was lost: it ended with exit code 3: no luck today'
forget_logs
expect_nothing_left

it "a program of ours that writes without end to its stderr: bounded memory"
bad_node 'exec sleep 300'
cat >"$scratch/bin/gpulaunch-coordinator" <<'SCRIPT'
#!/bin/sh
head -c 3000000 /dev/zero >&2 && exit 4
exit 3
SCRIPT
run "$scratch/bin/gpulaunch" --local --nodes 2 -- true
expect_status 75
expect_last_line 'coordinator was lost: it ended with exit code 3'
forget_logs

it "a worker's last words may be of any bytes"
bad_node "printf 'gr\\374n\\n' >&2; exit 9"
run "$scratch/bin/gpulaunch" --local --nodes 2 --join-timeout 30s -- true
expect_status 40
expect_last_line 'gpulaunch-worker ended with exit code 9: gr\?n'
forget_logs

it "what the user wrote cannot forge a line or move a cursor"
launch $'--no\e[31mred\nline2' -- true
expect_status 125
expect_lines "$err" 1
expect_lacks "$err" $'\e'
launch --self-test off -- $'./no\nsuch\e[31mcommand'
expect_status 127
expect_lines "$err" 1
expect_lacks "$err" $'\e'
forget_logs

it "a log directory whose name no message can carry: refused, nothing started"
launch --log-dir "$scratch/"$'l\377gs' -- touch "$scratch/witness"
expect_status 125
expect_lines "$err" 1
expect_last_line '--log-dir: .*not UTF-8'
[ ! -e "$scratch/witness" ] || fail "the command was started"

it "a home of such a name: the logs go to the next place"
mkdir "$scratch/"$'h\377me'
run env -u XDG_STATE_HOME HOME="$scratch/"$'h\377me' "$bin/gpulaunch" \
    --local --self-test off -- sh -c 'exit 3'
expect_status 3
expect_last_line "its log: $TMPDIR/gpulaunch-.*/rank-0\.err"
rm -r "$TMPDIR"/gpulaunch-*

it "a --result that is a link to nothing: refused"
ln -s nowhere "$scratch/link"
launch --result "$scratch/link" -- touch "$scratch/witness"
expect_status 125
expect_last_line 'link to nothing'
[ ! -e "$scratch/witness" ] || fail "the command was started"

it "--json shows a word that is not UTF-8, and its bytes"
launch --json --self-test off -- true $'\377'
expect_status 0
expect_json "$out" 'r["command"] == ["true", "\ufffd"]
    and r["command_hex"] == ["74727565", "ff"]'

done_stories
