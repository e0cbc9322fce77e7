#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# kill -9 of any of our programs in the middle of a run: no process of the job
# outlives it for long, and the user is told.
. "$(dirname "$0")/../lib/e2e.sh"

# The ranks ignore the signal that asks them to stop, and have children.
start_stubborn()
{
    rm -f "$scratch"/up.*
    launch_behind --nodes 3 --self-test off --grace 1s -- sh -c \
        "trap '' TERM HUP; sleep 301 & : >$scratch/up.\$RANK; sleep 300"
    within 20 "the ranks did not come up" ranks_are_up
}

ranks_are_up()
{
    [ "$(find "$scratch" -maxdepth 1 -name 'up.*' | wc -l)" -eq 3 ]
}

it "the front end is killed: coordinator, agents, ranks and their children end"
start_stubborn
kill -KILL "$front_end"
wait "$front_end" 2>/dev/null || true
expect_no_process 10

it "the coordinator is killed: the front end ends with 75 and says why"
start_stubborn
kill -KILL "$(pids_of gpulaunch-coordinator)"
finish
expect_status 75
expect_last_line 'coordinator'
expect_no_process 10

it "a worker is killed: its ranks end, the others are stopped, the node is named"
start_stubborn
kill -KILL "$(keeper_of local-1)"
finish
expect_status 75
expect_last_line 'local-1\b'
expect_no_process 10

it "a worker is killed: what its rank had detached and stripped of its environment ends"
rm -f "$scratch/pid"
launch_behind --nodes 2 --self-test off --grace 1s -- sh -c "
    [ \$RANK = 0 ] || { env -i setsid sh -c '
        echo \$\$ >$scratch/pid.new; mv $scratch/pid.new $scratch/pid
        exec sleep 311' & }
    wait; exec sleep 300"
has_pid()
{
    [ -s "$scratch/pid" ]
}
within 20 "the rank's child did not come up" has_pid
kill -KILL "$(keeper_of local-1)"
finish
expect_status 75
is_gone "$(cat "$scratch/pid")" || {
    kill -KILL "$(cat "$scratch/pid")"
    fail "the detached process lives on"
}
expect_no_process 10

it "a worker is killed: a process that gpulaunch's own had before it lives on"
cat >"$scratch/exec" <<SCRIPT
#!/bin/sh
env -u "${mark%%=*}" sleep 312 &
echo \$! >$scratch/own
exec "$bin/gpulaunch" "\$@"
SCRIPT
chmod +x "$scratch/exec"
run_behind "$scratch/exec" --local --nodes 1 --self-test off --grace 1s -- \
    sh -c ": >$scratch/up.one; exec sleep 300"
is_up()
{
    [ -e "$scratch/up.one" ]
}
within 20 "the rank did not come up" is_up
kill -KILL "$(keeper_of local-0)"
finish
own=$(cat "$scratch/own")
! is_gone "$own" || fail "the stranger was killed"
kill -KILL "$own"
expect_status 75
expect_no_process 10

it "front end and coordinator are killed together: the agents end the ranks"
start_stubborn
kill -KILL "$front_end" "$(pids_of gpulaunch-coordinator)"
wait "$front_end" 2>/dev/null || true
expect_no_process 20

# The worker of local-1 dials only when nobody is there any more.
it "the front end is killed before a node has joined: nobody goes on dialling"
bad_node ": >$scratch/late; while [ -e $scratch/late ]; do sleep 0.05; done"
run_behind "$scratch/bin/gpulaunch" --local --nodes 2 --self-test off -- true
is_late()
{
    [ -e "$scratch/late" ]
}
within 20 "the worker did not start" is_late
kill -KILL "$front_end"
wait "$front_end" 2>/dev/null || true
rm "$scratch/late"
expect_no_process 10

it "all of our programs are killed at once: the ranks do not live on"
start_stubborn
# shellcheck disable=SC2046  # a list of pids
kill -KILL "$front_end" $(pids_of gpulaunch-coordinator) \
    $(pids_of gpulaunch-worker)
wait "$front_end" 2>/dev/null || true
ranks_are_gone()
{
    [ -z "$(pids_of dash)" ]
}
within 5 "ranks are left" ranks_are_gone

done_stories
