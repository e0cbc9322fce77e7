#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The all-reduce self-test before the launch.
. "$(dirname "$0")/../lib/e2e.sh"

it "quick: a table on stderr before the command runs, in less than 2 s more"
launch --nodes 4 --self-test off -- true
expect_lacks "$err" 'busbw'
without_ms=$took_ms
for _ in 1 2 3; do # other work of the machine may slow one run
    launch --nodes 4 -- true
    expect_status 0
    expect_has "$err" 'algbw'
    expect_has "$err" 'busbw'
    more_ms=$((took_ms - without_ms))
    [ "$more_ms" -ge "$((2000 * slow))" ] || break
done
[ "$more_ms" -lt "$((2000 * slow))" ] ||
    fail "the quick self-test took $more_ms ms"
expect_nothing_left

it "full: every size from 8 B to 256 MiB, no wrong element"
bound_seconds=$((180 * slow))
launch --nodes 2 --self-test full --result "$scratch/full.json" -- true
expect_status 0
expect_json "$scratch/full.json" '{8 << i for i in range(26)}
    <= {row["bytes"] for row in r["self_test"]["rows"]}'
expect_json "$scratch/full.json" \
    'any(row["count"] % 2 == 1 for row in r["self_test"]["rows"])'
expect_json "$scratch/full.json" \
    'all(row["wrong_elements"] == 0 for row in r["self_test"]["rows"])'
expect_json "$scratch/full.json" 'all(0 < row["min_seconds"]
    <= row["median_seconds"] <= row["max_seconds"] for row in r["self_test"]["rows"])'

it "bus bandwidth is algorithm bandwidth times 2 (n - 1) / n, from the median"
launch --nodes 3 --result "$scratch/three.json" -- true
expect_json "$scratch/three.json" 'all(
    abs(row["busbw_bytes_per_second"] / row["algbw_bytes_per_second"] - 4 / 3)
    < 0.01 and
    abs(row["algbw_bytes_per_second"] * row["median_seconds"] / row["bytes"] - 1)
    < 0.01 for row in r["self_test"]["rows"])'

# probe_of NODE: sets `probe`, once it dials its neighbour: it has a socket for
# that beside the agent's and the one it listens on.
probe_of()
{
    probe=$(pgrep -P "$(agent_of "$1")" || true)
    [ -n "$probe" ] && [ "$(find "/proc/$probe/fd" -lname 'socket:*' \
        2>/dev/null | wc -l)" -ge 3 ]
}

it "a probe that hangs: its node is named, whoever waited for it is not"
launch_behind --nodes 4 --self-test full --self-test-timeout 12s -- true
within 30 "no probe came up on local-2" probe_of local-2
kill -STOP "$probe"
finish
expect_status 20
expect_last_line 'node local-2\b.*it did not end in time and was killed'
expect_nothing_left

it "a probe that is killed: its node is named, not its neighbours"
for node in local-1 local-3; do
    launch_behind --nodes 4 --self-test full -- true
    within 30 "no probe came up on $node" probe_of "$node"
    kill -KILL "$probe"
    finish
    expect_status 20
    expect_last_line "node $node\\b.*it was ended by signal 9 \\(SIGKILL\\)"
    expect_nothing_left
done

it "one node has nobody to reduce with: skipped, not passed"
launch --nodes 1 --result "$scratch/one.json" -- true
expect_status 0
expect_json "$scratch/one.json" 'r["self_test"]["status"] == "skipped"'
expect_lacks "$err" 'passed'

done_stories
