#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Addresses by proof, on the lab's machines: the interface that every other
# node has reached is taken, whatever it is called; useless ones are told with
# their reasons; who does not reach whom ends the job. The control channel goes
# around the lab's networks, so that these can be cut.
. "$(dirname "$0")/../lib/lab.sh"

nodes=3
result=$scratch/result.json

# spread_nodes OPTION...: a lab in which the workers of `gpulaunch --local` on
# the front are on the nodes, one each.
spread_nodes()
{
    local node folder=$scratch/bin

    lab down --all >/dev/null
    rm -f "$scratch/port" "$scratch/tunnel"
    make_lab --nodes "$nodes" "$@"
    LAB=$(echo "$scratch"/gpulaunch-lab.*)
    mkdir -p "$folder"
    cp "$bin/gpulaunch" "$bin/gpulaunch-coordinator" "$folder"
    cat >"$folder/gpulaunch-worker" <<SCRIPT
#!/bin/sh
for word; do
    case \$word in
    127.0.0.1:*) port=\${word#*:} ;;
    local-*) number=\$((\${word#local-} + 1)) ;;
    esac
done
echo "\$port" >"$scratch/port.\$number"
mv "$scratch/port.\$number" "$scratch/port"
export LAB="$LAB"
exec "$project/scripts/lab" exec "node0\$number" -- "$bin/gpulaunch-worker" "\$@"
SCRIPT
    chmod +x "$folder/gpulaunch-worker"
    for node in front $(seq -f node%02g "$nodes"); do
        env "$mark" "TMPDIR=$scratch" "$project/scripts/lab" exec "$node" -- \
            "$python" "$project/tests/lib/tunnel.py" "${node%%[0-9]*}" \
            "$scratch/port" "$scratch/tunnel" 2>"$scratch/tunnel.$node" &
        disown
    done
    within 20 "no tunnel" test -S "$scratch/tunnel"
}

# start OPTION... -- COMMAND...
start()
{
    run "${on_front[@]}" "$scratch/bin/gpulaunch" --local --nodes "$nodes" \
        --result "$result" "$@"
}

# Nothing of the job is on any node.
expect_clean_nodes()
{
    local left

    left=$(lab ps | grep -v tunnel.py || true)
    [ -z "$left" ] || fail "left on the nodes: $left"
}

# What a rank sees of its node and of the others.
# shellcheck disable=SC2016  # for the ranks' shell
show='echo "$RANK $MASTER_ADDR $GLOO_SOCKET_IFNAME $NCCL_SOCKET_IFNAME" \
    "$NCCL_SOCKET_FAMILY $JAX_COORDINATOR_ADDRESS $TF_CONFIG"'

spread_nodes --interfaces eth0,ens5,ib0 --second-network --decoy --no-dns

it "each node's own interface, whatever it is called; no name is looked up"
start --self-test quick -v --no-label -- sh -c "$show"
expect_status 0
expect_has "$out" '^0 10\.10\.1\.1 ens5 =ens5 AF_INET 10\.10\.1\.1:[0-9]+ '
expect_has "$out" '^1 10\.10\.1\.1 ib0 =ib0 AF_INET '
expect_has "$out" '^2 10\.10\.1\.1 eth0 =eth0 AF_INET '
expect_has "$out" '"worker":\["10\.10\.1\.1:[0-9]+","10\.10\.1\.2:[0-9]+"'
expect_json "$result" '[n["interface"] for n in r["nodes"]] ==
    ["ens5", "ib0", "eth0"]'
expect_json "$result" '[n["address"] for n in r["nodes"]] ==
    ["10.10.1.1", "10.10.1.2", "10.10.1.3"]'

it "a bridge that is the same everywhere is left out, and loopback: both say why"
expect_has "$err" 'not docker0 172\.17\.0\.1 \(bridge\): a bridge without a port'
expect_json "$result" 'all("lo 127.0.0.1 (loopback): loopback"
    in n["rejected_addresses"] for n in r["nodes"])'
expect_clean_nodes

it "without -v nothing is said of it"
start --self-test off -- true
expect_status 0
expect_lacks "$err" 'docker0|ens5'

it "a network that is cut one way: the nodes that it keeps apart take the other"
lab cut node01 node02 --network 1 --one-way
start --self-test quick --no-label -- sh -c "$show"
expect_status 0
expect_has "$out" '^0 10\.20\.1\.1 ens6 =ens6 '
expect_has "$out" '^1 10\.20\.1\.1 ib1 =ib1 '
expect_json "$result" 'any("10.10.1.2" in line and "did not reach" in line
    for line in r["nodes"][1]["rejected_addresses"])'
lab heal

it "both networks cut: 20, with who does not reach whom, by what and why"
lab cut node01 node02
start --self-test quick -- sh -c "$show"
expect_status 20
expect_empty "$out"
expect_last_line 'local-1 -> local-0 \(10\.10\.1\.1, ens5\): (timed out|unreach)'
expect_last_line 'local-0 -> local-1 fails too'
expect_lacks "$err" 'local-2 (->|\(host)'
expect_has "$err" '^gpulaunch: local-0 \(host node01\): no address'
expect_has "$err" 'not docker0 172\.17\.0\.1'
expect_json "$result" 'r["reason"] == "links_failed"'
expect_clean_nodes
lab heal

it "new connections to high ports are blocked on a node: the same"
lab block 20000-65535 node03
start --self-test quick -- true
expect_status 20
expect_last_line 'local-0 -> local-2 \(10\.10\.1\.3, eth0\): timed out'
expect_last_line 'local-2 -> local-0 works'
lab heal

it "--interface: what it names is used on each node"
start --self-test off --no-label --interface ens6,ib1,eth1 -- sh -c "$show"
expect_status 0
expect_has "$out" '^2 10\.20\.1\.1 eth1 =eth1 '

it "--interface: a node that has none of it is named, with what it has"
start --interface ens5,10.10.1.2 -- true
expect_status 20
expect_last_line 'node local-2 \(node03\).*ens5,10\.10\.1\.2.*eth0 \(10\.10\.1\.3\)'

it "--interface: one that leads nowhere is proved not to, and not replaced"
start --interface docker0 -- true
expect_status 20
expect_last_line '\(172\.17\.0\.1, docker0\): (connection refused|it reaches itself)'

it "gpulaunch env takes the same way"
run "${on_front[@]}" "$scratch/bin/gpulaunch" env --local --nodes "$nodes" \
    --rank 1 -- true
expect_status 0
expect_has "$out" '^MASTER_ADDR=10\.10\.1\.1$'
expect_has "$out" "^NCCL_SOCKET_IFNAME='?=ib0'?$"
expect_clean_nodes

it "IPv6 only: bare where that is wanted, in brackets elsewhere"
spread_nodes --ipv6-only --decoy
start --self-test quick --no-label -- sh -c "$show"
expect_status 0
expect_has "$out" '^1 fd00:10::1:1 eth0 =eth0 AF_INET6 \[fd00:10::1:1\]:[0-9]+ '
expect_has "$out" '"worker":\["\[fd00:10::1:1\]:[0-9]+","\[fd00:10::1:2\]:'
expect_clean_nodes

done_stories
