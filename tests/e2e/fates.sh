#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Every way in which a rank can end, and what is said of it: the exit code, the
# reason, the last line, the lines before it. None but 0 becomes 0.
. "$(dirname "$0")/../lib/e2e.sh"

result=$scratch/result.json

# fate COMMAND: two ranks, of which rank 1 ends by it.
fate()
{
    launch --nodes 2 --self-test off --result "$result" -- \
        sh -c "[ \$RANK = 0 ] && exec sleep 60; $1"
}

# said CODE REASON WORDS: by exit code, result and last line.
said()
{
    expect_status "$1"
    expect_json "$result" "r['exit_code'] == $1 and r['reason'] == '$2'"
    expect_last_line "rank 1 on node local-1 .*$3"
    expect_has "$err" "^gpulaunch: first failure: rank 1 .* pid [0-9]+, .*$3"
    expect_has "$err" '^gpulaunch: stopped after it: 1 rank: 0 on node local-0$'
    forget_logs
    expect_nothing_left
}

it "0 of all ranks is 0, and nothing is said"
launch --nodes 2 --self-test off -- true
expect_status 0
expect_empty "$err"
expect_nothing_left

for code in 1 3 127 255; do
    it "a rank that exits with $code"
    fate "exit $code"
    said "$code" rank_failed "exited with code $code\\b"
done

while read -r name number words; do
    it "a rank that SIG$name ends"
    fate "kill -$name \$\$; sleep 60"
    said "$((128 + number))" rank_signaled \
        "was ended by signal $number \\(SIG$name\\)$words"
done <<'TABLE'
TERM 15 ;
SEGV 11 : segmentation fault
ABRT 6 : it aborted itself
KILL 9 : killed by somebody outside the job
TABLE

it "one that is killed is not said to be out of memory"
fate 'kill -KILL $$; sleep 60'
expect_json "$result" 'r["exits"][0]["out_of_memory"] is not True'
expect_lacks "$err" ': out of memory'
forget_logs

it "a command that is not there: one line"
launch --nodes 2 --self-test off --result "$result" -- no-such-command
expect_status 127
expect_json "$result" 'r["reason"] == "exec_failed"'
expect_lines "$err" 1

it "a node whose keeper is killed: 75, and the other ranks are stopped"
launch_behind --nodes 2 --self-test off --result "$result" -- \
    sh -c ": >$scratch/up.\$RANK; exec sleep 60"
both_are_up()
{
    [ -e "$scratch/up.0" ] && [ -e "$scratch/up.1" ]
}
within 20 "the ranks did not start" both_are_up
keeper_of()
{
    local pid

    for pid in $(pids_of gpulaunch-worker); do
        if tr '\0' '\n' <"/proc/$pid/cmdline" | grep -qx "$1" &&
            [ "$(ps -o ppid= -p "$pid" | tr -d ' ')" = "$2" ]; then
            echo "$pid"
        fi
    done
}
victim=
for pid in $(pids_of gpulaunch); do
    victim=$(keeper_of local-1 "$pid")
    [ -z "$victim" ] || break
done
[ -n "$victim" ] || fail "no keeper of local-1 is there"
kill -KILL "$victim"
finish
expect_status 75
expect_json "$result" 'r["exit_code"] == 75 and r["reason"] == "node_lost"'
expect_last_line 'node local-1 .* was lost'
expect_has "$err" '^gpulaunch: stopped after it: 1 rank: 0 on node local-0$'
forget_logs
expect_no_process 5

# ---- out of memory --------------------------------------------------------

# The line of this shell in the hierarchy with this controller ("" for v2).
own_cgroup()
{
    awk -F: -v controller="$1" '
        controller == "" ? $2 == "" : ("," $2 ",") ~ ("," controller ",") {
            print $3
            exit
        }' /proc/self/cgroup
}

# Makes a cgroup with a limit below ours and sets `cgroup`; false: none can be.
make_cgroup()
{
    local limit=268435456

    cgroup=/sys/fs/cgroup/memory$(own_cgroup memory)/e2e-$$
    if mkdir "$cgroup" 2>/dev/null; then
        echo "$limit" 2>/dev/null >"$cgroup/memory.limit_in_bytes" && return
        rmdir "$cgroup"
    fi
    cgroup=/sys/fs/cgroup$(own_cgroup "")/e2e-$$
    if mkdir "$cgroup" 2>/dev/null; then
        echo "$limit" 2>/dev/null >"$cgroup/memory.max" && return
        rmdir "$cgroup"
    fi
    return 1
}

# A test that ends early leaves processes that the library's trap kills first.
remove_cgroup()
{
    local left=100

    until rmdir "$cgroup" 2>/dev/null || [ "$((left -= 1))" -eq 0 ]; do
        sleep 0.02
    done
}

if make_cgroup; then
    trap 'clean_up; remove_cgroup' EXIT
    it "a rank that is out of memory in its cgroup: 137, and that is said"
    run sh -c 'echo $$ >"$1/cgroup.procs"; shift; exec "$@"' - "$cgroup" \
        "$bin/gpulaunch" --local --nodes 2 --self-test off --result "$result" \
        -- "$python" -c '
import os
import time

if os.environ["RANK"] == "0":
    time.sleep(60)
hoard = [b"x" * 2**20 for _ in range(4096)]'
    said 137 rank_signaled \
        "was ended by signal 9 \\(SIGKILL\\): out of memory"
    expect_json "$result" 'r["exits"][0]["out_of_memory"] is True'
    expect_json "$result" 'r["exits"][0]["max_rss_bytes"] > 1 << 25'
    expect_has "$err" '^gpulaunch:   its memory was [0-9.]+ MiB at most$'
else
    echo "skipped: out of memory: no cgroup with a memory limit can be made"
fi

done_stories
