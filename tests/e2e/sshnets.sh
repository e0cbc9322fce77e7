#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Nodes that are reached by ssh, over the networks that there are: many nodes,
# interfaces of different names beside a bridge that leads nowhere, IPv6 alone;
# and at which addresses they are told to find the job.
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

# The front is found by 203.0.113.7 only, which it does not have.
cat >"$scratch/nat" <<'NFT'
table ip outside {
    chain direct {
        type filter hook output priority -150
        ip daddr 10.10.0.1 tcp dport 29400 drop
    }
    chain forward {
        type nat hook output priority -100
        ip daddr 203.0.113.7 tcp dport 443 dnat to 10.10.0.1:29400
    }
}
NFT

it "--advertise: an address that only leads here is the one that nodes try first"
on node01 nft -f "$scratch/nat"
on node01 ip route add 203.0.113.7 via 10.10.0.1
on_hosts --hosts node01 --self-test off --port 29400 --join-timeout 5s -- true
expect_status 40
expect_last_line 'from there the coordinator cannot be reached'
on_hosts --hosts 'node[01-02]' --self-test off --port 29400 \
    --advertise 203.0.113.7:443 -- true
expect_status 0
expect_empty "$err"
on_hosts --hosts node01 --address 203.0.113.7 -- true
expect_status 125
expect_last_line 'no address of this machine; .*give it by --advertise'
on_hosts --hosts node01 --port 29400 --advertise front.example -- true
expect_status 125
expect_last_line '"front\.example" is no literal address; nodes that are reached by ssh'
on_hosts --hosts node01 --port 29400 --advertise 203.0.113.7 --insecure -- true
expect_status 125
expect_idle_nodes 20

it "a bridge that a card is a port of is told to nodes that join, an idle one is not"
on front ip link add link eth0 name card0 type macvlan mode bridge
on front ip link add br0 type bridge
on front ip link set card0 master br0
on front ip address add 10.30.0.1/16 dev br0
on front ip link set card0 up
on front ip link set br0 up
has_carrier()
{
    [ "$(on front cat /sys/class/net/br0/operstate)" = up ]
}
within 30 "the bridge has no carrier" has_carrier
on_hosts --nodes 1 --join-timeout 2s -- true
expect_status 40
expect_has "$err" '^  gpulaunch join 10\.10\.0\.1:'
expect_has "$err" '^  gpulaunch join 10\.30\.0\.1:'
expect_lacks "$err" 'join 172\.17\.0\.1'

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

it "an address that cannot be listened on yet is left out, and that is said"
on front sh -c 'echo 600 >/proc/sys/net/ipv6/conf/eth0/dad_transmits'
on front ip address add fd00:77::1/64 dev eth0
on_hosts --nodes 1 --join-timeout 2s -- true
expect_status 40
expect_has "$err" 'nodes are not told of an address: cannot listen on fd00:77::1: Cannot assign'
expect_has "$err" '^  gpulaunch join \[fd00:10::1\]:'
expect_lacks "$err" 'join \[fd00:77::1\]'

done_stories
