#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# gpulaunch check on machines of the network lab: a healthy fleet within its
# time, and each class of failure with its exit code, its node and its finding.
. "$(dirname "$0")/../lib/lab.sh"

nodes='node[01-04]'

make_lab --nodes 4 --sshd

# check OPTION...
check()
{
    run "${on_front[@]}" "$bin/gpulaunch" check --hosts "$nodes" "$@"
}

it "four healthy nodes: 0 within 20 s, nothing fails, nothing is left"
check --record "$scratch/healthy.record"
expect_status 0
expect_within_ms 20000
expect_has "$out" '^PASSED  4 nodes: 0 failed, '
expect_has "$out" '^# all-reduce on host memory over TCP, 4 nodes'
expect_idle_nodes 10

it "a node whose ports are blocked: 20, each pair with its direction"
lab block 20000-65535 node03
check --self-test-timeout 20s
expect_status 20
expect_has "$out" '^FAIL    NET-110  node\[01,03\]'
expect_has "$out" 'node01 -> node03 \(10\.10\.1\.3, eth0\): timed out; node03 -> node01 works'
expect_has "$out" '^UNKNOWN TEST-601'
lab heal
expect_idle_nodes 10

it "a command that one node lacks: 20, it is named, and the test goes on"
for node in node01 node02 node04; do
    on "$node" sh -c 'printf "#!/bin/sh\n" >/run/tool && chmod +x /run/tool'
done
check -- /run/tool
expect_status 20
expect_has "$out" '^FAIL    ENV-141  node03$'
expect_has "$out" '^# all-reduce on host memory over TCP, 4 nodes'

it "a node that loses power: 41, it is named, what is known is told"
run_behind "${on_front[@]}" "$bin/gpulaunch" check --hosts "$nodes" \
    --self-test full -v
within 60 "no self-test" grep -q 'self-test started' "$err"
lab kill node02
finish
expect_status 41
expect_has "$out" '^FAIL    INIT-902  node02'
expect_has "$out" '^ENDED EARLY  4 nodes: '
expect_has "$out" '^PASS    CLOCK-541'
lab heal

it "a node that does not come: 40, it is named"
lab cut node04
check --join-timeout 5s
case $status in
40 | 75) ;;
*) fail "exit code is $status, neither 40 nor 75" ;;
esac
expect_has "$out" 'node04'
lab heal

done_stories
