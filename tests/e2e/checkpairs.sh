#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The pair trials of a check, with real traffic on the lab's machines: a slow
# node and one that loses data are named within three rounds, a slow path
# between two good nodes is called a path, and of good nodes nobody is named.
. "$(dirname "$0")/../lib/lab.sh"

bound_seconds=300
healthy_runs=${GPULAUNCH_TEST_HEALTHY:-2}

# check_on NODES OPTION...: the self-test behind the trials is kept short.
check_on()
{
    run "${on_front[@]}" "$bin/gpulaunch" check --hosts "node[01-0$1]" \
        --maxbytes 64K "${@:2}"
}

# expect_named ID NODES: in this finding, and within three rounds; no other
# node or path fails.
expect_named()
{
    expect_has "$out" "^FAIL +$1 +$2\$"
    expect_has "$out" 'named in round [1-3]$'
    [ "$(grep -cE '^FAIL ' "$out")" -eq 1 ] ||
        fail "more than $2 failed: $(cat "$out")"
}

# slow_path FROM TO ADDRESS: what one sends to the other, and nothing else. The
# kernel's token bucket is for a whole link, so a class of packets gets one.
slow_path()
{
    on "$1" tc qdisc replace dev eth0 root handle 1: htb default 10
    on "$1" tc class add dev eth0 parent 1: classid 1:10 \
        htb rate 40gbit burst 1mb cburst 1mb quantum 60000
    on "$1" tc class add dev eth0 parent 1: classid 1:20 \
        htb rate 50mbit quantum 60000
    on "$1" nft -f - <<RULES
table inet slow {
    chain out {
        type filter hook postrouting priority 0;
        ip daddr $2 meta priority set 1:20
    }
}
RULES
}

fast_path()
{
    on "$1" nft delete table inet slow
    on "$1" tc qdisc del dev eth0 root
}

make_lab --nodes 8 --sshd --id pairs

it "of 8 good nodes nobody is named, again and again"
for ((i = 0; i < healthy_runs; i++)); do
    check_on 8
    expect_status 0
    expect_lacks "$out" '(PERF|NET)-[0-9]+ +node'
done
expect_idle_nodes 20

it "a slow node among 8, and among 7, is named, on record too"
lab rate 100mbit node05
check_on 8 --record "$scratch/record"
expect_status 30
expect_named PERF-701 node05
expect_has "$scratch/record" '"type":"pair","round":1,'
expect_has "$scratch/record" '"verdict".*"node05".*"slow","direction":"both"'
check_on 7
expect_status 30
expect_named PERF-701 node05
lab heal

it "a slow path between two good nodes is called a path"
slow_path node03 10.10.1.4
slow_path node04 10.10.1.3
check_on 7
expect_status 30
expect_named PERF-702 'node\[03-04\]'
expect_has "$out" 'both nodes are good with others'
fast_path node03
fast_path node04

it "a node that loses one packet in ten, and a path that does"
lab loss 10 node02
check_on 8
expect_status 30
expect_named PERF-703 node02
lab heal
lab loss 10 node04 node05
check_on 7
expect_status 30
expect_named PERF-703 'node\[04-05\]'
lab heal

it "a port blocked one way is told with the pair and the direction"
lab block 32768-60999 node03
check_on 4
expect_status 20
expect_has "$out" '^FAIL +NET-110'
expect_has "$out" 'node0[124] -> node03 .*timed out; node03 -> node0[124] works'
lab heal

expect_idle_nodes 20

done_stories
