#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What survives the death of an agent, and what does not survive that of its
# keeper: docs/supervision.md, "Who dies, what happens".
kills=${GPULAUNCH_TEST_KILLS:-100}
. "$(dirname "$0")/../lib/e2e.sh"

# A rank that counts, one number a line, as fast as a shell can, until it is
# told to stop; what it counted to is its last word, on stderr.
cat >"$scratch/count" <<SCRIPT
#!/bin/sh
i=0
while [ ! -e "$scratch/enough" ]; do
    i=\$((i + 1))
    echo \$i
done
echo "rank \$RANK counted to \$i" >&2
SCRIPT
chmod +x "$scratch/count"

has_text()
{
    [ -s "$1" ]
}

# agent_is_new OLD: another agent than that has been let in by the coordinator.
agent_is_new()
{
    local now

    now=$(agent_of local-0)
    [ -n "$now" ] && [ "$now" != "$1" ] &&
        [ "$(grep -c 'the agent of this node was restarted' "$err")" -gt "$2" ]
}

it "an agent is killed $kills times: ranks go on counting, no byte of a log is lost"
rm -f "$scratch/enough"
launch_behind --nodes 1 --per-node 2 --self-test off \
    --log-dir "$scratch/logs" -- "$scratch/count"
for ((i = 0; i < kills; i++)); do
    agent=
    within 20 "there is no agent" eval 'agent=$(agent_of local-0); [ -n "$agent" ]'
    [ "$i" -gt 0 ] ||
        within 20 "the ranks did not start" eval \
            'has_text "$(log_of 1 out)"'
    kill -KILL "$agent"
    within 20 "no agent came after the $((i + 1)). one" agent_is_new "$agent" "$i"
done
: >"$scratch/enough"
finish
expect_status 0
expect_no_process 5
for rank in 0 1; do
    last=$(sed -n "s/.*rank $rank counted to //p" "$(log_of $rank err)")
    seq 1 "$last" | cmp - "$(log_of $rank out)" ||
        fail "the log of rank $rank is not what the rank wrote"
done
forget_logs
rm -rf "$scratch/logs"

# start_stubborn: two nodes whose ranks and their children, in sessions of
# their own, ignore what asks them to stop.
start_stubborn()
{
    rm -f "$scratch"/up.*
    launch_behind --nodes 2 --self-test off --grace 1s "$@" -- sh -c \
        "trap '' TERM HUP
         setsid sh -c 'trap \"\" TERM HUP; : >$scratch/up.\$RANK; sleep 321' &
         sleep 322"
    within 20 "the ranks did not come up" ranks_are_up
}

ranks_are_up()
{
    [ -e "$scratch/up.0" ] && [ -e "$scratch/up.1" ]
}

# The undertaker removes what its keeper has made before gpulaunch ends.
expect_no_cgroup()
{
    [ -z "$(find /sys/fs/cgroup -maxdepth 3 -name "gpulaunch-$1-*" 2>/dev/null)" ] ||
        fail "the cgroup of keeper $1 is left"
}

it "a keeper is killed: its ranks die at once, the node is named, 75"
start_stubborn
keeper=$(keeper_of local-1)
kill -KILL "$keeper"
finish
expect_status 75
expect_has "$err" 'local-1.*the keeper of this node ended, and its ranks were killed'
expect_last_line 'local-1\b'
expect_no_process 5
expect_no_cgroup "$keeper"

it "a keeper is stopped: it is noticed and killed, the node is named, 75"
start_stubborn
keeper=$(keeper_of local-1)
kill -STOP "$keeper"
finish
expect_status 75
expect_has "$err" 'local-1.*the keeper of this node was stopped or stuck, did not answer for 15 s and was killed, and its ranks were killed'
expect_last_line 'local-1\b'
expect_no_process 5
expect_no_cgroup "$keeper"

it "keeper and agent are killed together: the node is named, what it left is gone"
start_stubborn --result "$scratch/result.json"
keeper=$(keeper_of local-1)
kill -KILL "$keeper" "$(agent_of local-1)"
finish
expect_status 75
expect_last_line 'local-1\b'
expect_lacks "$err" unclean
expect_json "$scratch/result.json" 'r["unclean"] == []'
expect_no_process 5
expect_no_cgroup "$keeper"

it "agent, then keeper: nothing is left either"
start_stubborn
keeper=$(keeper_of local-1)
kill -KILL "$(agent_of local-1)"
kill -KILL "$keeper"
finish
expect_status 75
expect_last_line 'local-1\b'
expect_no_process 5
expect_no_cgroup "$keeper"

# Nothing ends a process in a frozen cgroup (v1) before that is thawed.
thaw()
{
    echo THAWED >"$freezer/freezer.state"
    within 10 "the cgroup is not empty" eval '[ -z "$(cat "$freezer/cgroup.procs")" ]'
    rmdir "$freezer"
    freezer=
}

freezer=/sys/fs/cgroup/freezer/gpulaunch-test-$$
if mkdir "$freezer" 2>/dev/null; then
    trap '[ -z "$freezer" ] || thaw; clean_up' EXIT
    it "keeper and agent are killed, and a rank would not die: it is named"
    start_stubborn --result "$scratch/result.json"
    keeper=$(keeper_of local-1)
    rank=$(pgrep -P "$keeper" -x sh)
    echo "$rank" >"$freezer/cgroup.procs"
    echo FROZEN >"$freezer/freezer.state"
    kill -KILL "$keeper" "$(agent_of local-1)"
    finish
    expect_status 75
    expect_has "$err" "unclean: local-1: lost; what ran there was not seen to end"
    expect_has "$err" "unclean: 1 process of a node that ended: $rank sh\$"
    expect_json "$scratch/result.json" "any('$rank sh' in u for u in r['unclean'])"
    thaw
    trap clean_up EXIT
    expect_no_process 5
    find /sys/fs/cgroup -maxdepth 3 -name "gpulaunch-$keeper-*" -exec rmdir {} +
else
    echo "not tried: a rank that would not die (no cgroup v1 freezer to write)"
fi

forget_logs

it "a rank that detaches, ignores TERM and holds stdout open delays nothing"
rm -f "$scratch/pid"
run "$bin/gpulaunch" --local --nodes 1 --self-test off --grace 1s -- sh -c "
    (setsid sh -c 'trap \"\" TERM HUP; echo \$\$ >$scratch/pid; exec sleep 323' &)
    while [ ! -s $scratch/pid ]; do sleep 0.01; done
    echo said"
expect_status 0
expect_out said
expect_within_ms 6000
is_gone "$(cat "$scratch/pid")" || fail "the detached process lives on"
expect_nothing_left

done_stories
