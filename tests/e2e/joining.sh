#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A job that waits for nodes, and gpulaunch join, by which they come.
. "$(dirname "$0")/../lib/e2e.sh"

# A port that nobody has now.
free_port()
{
    "$python" -c 'import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])'
}

# wait_for_nodes ARGUMENT...: a job on loopback, without waiting. Sets `line`,
# the arguments for join that it prints.
wait_for_nodes()
{
    run_behind "$bin/gpulaunch" --address 127.0.0.1 "$@"
    within 20 "no line for the nodes" grep -q '^  gpulaunch join ' "$err"
    read -ra line < <(sed -n 's/^  gpulaunch join //p' "$err" | head -n 1)
}

# join NAME ARGUMENT...: a node by that line, without waiting. Its words are in
# $scratch/NAME.err, its pid in `node`.
join()
{
    local name=$1
    shift
    env "$mark" "$bin/gpulaunch" join "${line[@]}" --name "$name" "$@" \
        >"$scratch/$name.out" 2>"$scratch/$name.err" </dev/null &
    node=$!
}

# expect_node PID CODE
expect_node()
{
    local code=0

    within 30 "a node does not end" is_gone "$1"
    wait "$1" || code=$?
    [ "$code" = "$2" ] || fail "a node ended with $code, not $2"
}

it "nodes that run the printed line are the job, in the order of their names"
wait_for_nodes --nodes 2 -- sh -c 'echo "$RANK of $WORLD_SIZE"; exit 0'
expect_has "$err" 'waiting for 2 nodes to join'
secret=${line[4]}
[ "$(stat -c %a "$secret")" = 600 ] || fail "others may read the secret"
[ "$(stat -c %a "$(dirname "$secret")")" = 700 ] || fail "its folder is open"
join n10
first=$node
join n9
expect_node "$first" 0
expect_node "$node" 0
finish
expect_status 0
expect_has "$out" '^\[0\] 0 of 2$'
expect_has "$out" '^\[1\] 1 of 2$'
expect_has "$err" 'self-test passed'
expect_has "$err" 'all-reduce on host memory over TCP, 2 nodes'
expect_empty "$scratch/n9.err"
expect_empty "$scratch/n10.err"
expect_nothing_left 5

it "a rank that fails is the job's failure, and the nodes leave"
wait_for_nodes --nodes 2 --self-test off -- sh -c 'exit $((RANK * 7))'
join a
first=$node
join b
expect_node "$first" 0
expect_node "$node" 0
finish
expect_status 7
expect_last_line 'rank 1 on node b .* exited with code 7'
forget_logs
expect_nothing_left 5

it "a wrong secret is told on both sides, at once"
"$bin/gpulaunch" secret "$scratch/other.secret"
wait_for_nodes --nodes 1 --self-test off --join-timeout 60s -- true
right=("${line[@]}")
line[4]=$scratch/other.secret
join wrong --join-timeout 6s
within 5 "the node does not say it" grep -q \
    "refused this node's key: is its --secret-file the job's own?; trying on" \
    "$scratch/wrong.err"
within 5 "the job does not say it" grep -q \
    'calls itself wrong of this job showed a wrong secret' "$err"
expect_node "$node" 40
line=("${right[@]}")

it "another job's id is told as that"
line[2]=another
join lost --join-timeout 2s
expect_node "$node" 40
expect_has "$scratch/lost.err" 'serves another job, or is no gpulaunch'
line=("${right[@]}")
join right
expect_node "$node" 0
finish
expect_status 0
expect_nothing_left 5

it "two nodes of one name: the second is refused on both sides, and one too many"
wait_for_nodes --nodes 2 --self-test off -v -- \
    sh -c "touch '$scratch/ready.'\$RANK; until [ -e '$scratch/go' ]; do sleep 0.05; done"
join twin
first=$node
within 20 "no node came" grep -q 'twin' "$err"
join twin
expect_node "$node" 125
expect_has "$scratch/twin.err" 'a second node of the name twin came from 127\.0\.0\.1'
join other
other=$node
within 20 "no ranks" test -e "$scratch/ready.0" -a -e "$scratch/ready.1"
join late
expect_node "$node" 125
expect_has "$scratch/late.err" 'node late from 127\.0\.0\.1 is one too many'
touch "$scratch/go"
expect_node "$first" 0
expect_node "$other" 0
finish
expect_status 0
expect_has "$err" 'a second node of the name twin'
expect_has "$err" 'node late from 127\.0\.0\.1 is one too many'
expect_nothing_left 5

it "a job that is not there yet only delays; at half of the time that is said"
port=$(free_port)
"$bin/gpulaunch" secret "$scratch/job.secret"
line=("127.0.0.1:$port" --job later --secret-file "$scratch/job.secret")
join early --join-timeout 4s
expect_node "$node" 40
expect_has "$scratch/early.err" 'has not let this node in for [0-9.]+ s: .*refused; trying on for [0-9]+ s'
expect_has "$scratch/early.err" 'no connection to the coordinator at .* within [0-9.]+ s: .*refused'

it "the secret and the port may be chosen; the file stays"
wait_for_nodes --nodes 1 --port "$port" --secret-file "$scratch/job.secret" \
    --self-test off -- true
[ "${line[0]}" = "127.0.0.1:$port" ] || fail "another port: ${line[0]}"
[ "${line[4]}" = "$scratch/job.secret" ] || fail "another file: ${line[4]}"
join one
expect_node "$node" 0
finish
expect_status 0
[ -e "$scratch/job.secret" ] || fail "the user's file is gone"
expect_nothing_left 5

it "--advertise: what leads here is told first, with a port of its own"
cat >"$scratch/forward.py" <<'PYTHON'
import socket, sys, threading
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
def copy(a, b):
    while data := a.recv(65536):
        b.sendall(data)
    b.shutdown(socket.SHUT_WR)
while True:
    near = listener.accept()[0]
    far = socket.create_connection(("127.0.0.1", int(sys.argv[2])))
    for pair in (near, far), (far, near):
        threading.Thread(target=copy, args=pair, daemon=True).start()
PYTHON
outside=$(free_port)
"$python" "$scratch/forward.py" "$outside" "$port" &
forwarder=$!
wait_for_nodes --nodes 1 --port "$port" --advertise "localhost:$outside" \
    --self-test off -- true
[ "${line[0]}" = "localhost:$outside" ] || fail "first is ${line[0]}"
expect_has "$err" "^  gpulaunch join 127\\.0\\.0\\.1:$port "
join outside
expect_node "$node" 0
finish
expect_status 0
kill "$forwarder"
expect_nothing_left 5

it "nodes that do not come: how many, at half of the time and at the end"
run "$bin/gpulaunch" --address 127.0.0.1 --nodes 3 --join-timeout 2s -- true
expect_status 40
expect_has "$err" 'waiting: 0/3 nodes have joined; missing: 3 nodes'
expect_last_line '0 of 3 nodes joined within 2 s; missing: 3 nodes'
forget_logs
expect_nothing_left 5

it "a name that nobody knows ends at the bound"
line=(nosuch.invalid:1 --job j --secret-file "$scratch/job.secret")
join nobody --join-timeout 2s
expect_node "$node" 40
expect_has "$scratch/nobody.err" 'the name nosuch\.invalid was not found within 2 s'

it "without a secret a node does not even try"
run "$bin/gpulaunch" join 127.0.0.1:1 --job j
expect_status 125
expect_last_line 'the job.s secret is needed'

it "a node that is told to stop stops its ranks, which is the job's end"
wait_for_nodes --nodes 1 --self-test off -- \
    sh -c "touch '$scratch/runs'; exec sleep 300"
join gone
within 20 "no rank" test -e "$scratch/runs"
kill -TERM "$node"
finish
expect_status 143
expect_last_line 'rank 0 on node gone .* was ended by signal 15'
expect_node "$node" 143
forget_logs
expect_nothing_left 10

done_stories
