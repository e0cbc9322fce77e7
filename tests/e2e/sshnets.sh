#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Nodes that are reached by ssh, over the networks that there are: many nodes,
# interfaces of different names beside a bridge that leads nowhere, IPv6 alone.
. "$(dirname "$0")/../lib/lab.sh"

on_hosts()
{
    run "${on_front[@]}" "$bin/gpulaunch" "$@"
}

bound_seconds=120
make_lab --nodes 16 --sshd --decoy --interfaces eth0,ens5,ib0 --id many

it "16 nodes run the example, by the interface that they have reached each other by"
on_hosts --hosts 'node[01-16]' -- "$python" \
    "$project/docs/examples/train.py" --workers 16
expect_status 0
expect_has "$err" 'self-test passed on host memory over TCP'
expect_has "$out" '^\[15\] worker 15 of 16: loss 0\.154961'
expect_idle_nodes 20

it "one of them fails: the code is its own, and the others are cleaned up"
on_hosts --hosts 'node[01-16]' --self-test off -- \
    sh -c '[ "$RANK" != 11 ] || exit 9; sleep 300'
expect_status 9
expect_last_line 'rank 11 on node node12 '
expect_idle_nodes 20

lab down many
make_lab --nodes 3 --sshd --ipv6-only --id six

it "IPv6 alone: by name and by literal, in brackets where each wants them"
on_hosts --hosts 'node[01-03]' -- \
    sh -c 'echo "$RANK $MASTER_ADDR $JAX_COORDINATOR_ADDRESS $TF_CONFIG"'
expect_status 0
expect_has "$err" 'self-test passed'
expect_has "$out" '^\[2\] 2 fd00:10::1:1 \[fd00:10::1:1\]:[0-9]+ .*"\[fd00:10::1:3\]:[0-9]+"\]'
on_hosts --hosts 'fd00:10::1:2,[fd00:10::1:1]:2' --per-node 1 --self-test off -- \
    sh -c 'echo "$RANK $MASTER_ADDR"'
expect_status 0
expect_has "$out" '^\[1\] 1 fd00:10::1:2$'
expect_idle_nodes 20

done_stories
