#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The network lab's faults, each by itself: what is cut is cut, one way is one
# way, loss loses, a rate limits, a relay delays; and heal ends it.
. "$(dirname "$0")/../lib/lab.sh"

datagrams=$project/tests/lib/datagrams.py

make_lab --nodes 3 --sshd --second-network

# Every node answers datagrams; what it got is in $scratch/echo.NODE.
for node in node01 node02 node03; do
    env "$mark" "TMPDIR=$scratch" "$project/scripts/lab" exec "$node" -- \
        "$python" "$datagrams" echo "$scratch/echo.$node" \
        2>"$scratch/echo.$node.err" &
    disown
    within 20 "the echo on $node did not start" test -e "$scratch/echo.$node"
done

# How long the last answers are waited for, in seconds; nothing that is to
# arrive is delayed for so long.
patience=1

got_by()
{
    wc -l <"$scratch/echo.$1"
}

# send FROM TO COUNT [NAME]: datagrams, to that name of the node. Sets `asked`
# to how many TO got; the answers are in $out.
send()
{
    local before port

    port=$(head -n 1 "$scratch/echo.$2")
    before=$(got_by "$2")
    run env "TMPDIR=$scratch" "$project/scripts/lab" exec "$1" -- \
        "$python" "$datagrams" send "${4:-$2}" "$port" "$3" "$patience"
    expect_status 0
    asked=$(($(got_by "$2") - before))
}

expect_all()
{
    send "$1" "$2" 5 "${3:-}"
    expect_json "$out" 'r["back"] == [0, 1, 2, 3, 4]'
}

expect_none()
{
    patience=0.3 send "$1" "$2" 3 "${3:-}"
    expect_json "$out" 'r["back"] == []'
    [ "$asked" -eq 0 ] || fail "$2 got $asked datagrams"
}

# expect_fault REGEX: a line of `lab status`.
expect_fault()
{
    lab status >"$out"
    expect_has "$out" "$1"
}

it "as it is: every node reaches every other, on both networks"
expect_all node01 node02
expect_all node02 node01
expect_all node03 node01 node01-net2

it "a cut between two: nothing passes either way, and others do not feel it"
lab cut node01 node02
expect_none node01 node02
expect_none node02 node01
expect_none node01 node02 node02-net2
expect_all node01 node03
expect_fault '^cut from node01 to node02: [1-9][0-9]* packets so far$'

it "heal of that pair, in either order"
lab heal node02 node01
expect_all node01 node02
lab status >"$out"
expect_lacks "$out" cut

it "a cut one way: requests arrive and answers do not, or not even requests"
lab cut node01 node02 --one-way
expect_none node01 node02
send node02 node01 3
expect_json "$out" 'r["back"] == []'
[ "$asked" -eq 3 ] || fail "of 3 the other way arrived $asked"
lab heal

it "a cut on one network leaves the other"
lab cut node01 --network 1
expect_none node02 node01
expect_none node01 node03
expect_all node01 node03 node03-net2
lab heal node01
expect_all node02 node01

it "loss: some of many get lost, not all, and they are counted"
lab loss 50 node01 node02
send node01 node02 200
expect_json "$out" '10 < len(r["back"]) < 100'
[[ $asked -gt 50 && $asked -lt 150 ]] || fail "$asked of 200 arrived"
expect_fault '^loss of 50% from node01 to node02: [1-9][0-9]+ packets so far$'
expect_all node03 node02
lab heal

it "loss everywhere, on one network"
lab loss 100% --network 1
expect_none node03 node02
expect_all node03 node02 node02-net2
lab heal
expect_all node03 node02

it "a rate limits both ways: 500 KB at 10 Mbit a second take 0.4 s"
lab rate 10mbit node01
for command in 'head -c 500000 /dev/zero | ssh node01 "cat >/dev/null"' \
    'ssh node01 "head -c 500000 /dev/zero" >/dev/null'; do
    # The bucket may be full at the start, and 15 KB are in it.
    run "${on_front[@]}" bash -c "$command"
    expect_status 0
    [ "$took_ms" -ge 380 ] || fail "took only $took_ms ms: $command"
done
expect_fault '^rate of node01 on network 1: 10000000 bits a second$'
lab heal
lab status >"$out"
expect_lacks "$out" rate

it "a delay: no answer comes sooner, and frames stay in order"
lab delay 20ms-40ms node01
send node02 node01 20
expect_json "$out" 'r["back"] == list(range(20)) and min(r["ms"]) >= 40'
lab delay 20ms node01 --network 2
send node02 node01 5 node01-net2
expect_json "$out" 'len(r["back"]) == 5 and min(r["ms"]) >= 40'

it "reorder: they overtake each other, none is lost"
lab delay 5ms-40ms --reorder node01
send node02 node01 40
expect_json "$out" 'sorted(r["back"]) == list(range(40)) != r["back"]
    and min(r["ms"]) >= 10'
expect_fault '^delay of node01 on network 1: 5-40 ms, seed 1, reordered$'

it "cut and loss hold on the way through a relay, once"
lab cut node01 node02
expect_none node02 node01
lab heal node01 node02
lab loss 50 --network 1
send node02 node01 200
[[ $asked -gt 50 && $asked -lt 150 ]] || fail "$asked of 200 arrived"
lab heal
expect_all node02 node01

it "the same seed delays the same frames by the same time"
cat >"$scratch/draws.py" <<'PY'
import importlib.util
import os
import sys

spec = importlib.util.spec_from_file_location("relay", sys.argv[1])
relay = importlib.util.module_from_spec(spec)
spec.loader.exec_module(relay)


def order(seed):
    """Of ten frames that come at once, in which order do they leave?"""
    near, far = os.pipe2(os.O_NONBLOCK), os.pipe2(os.O_NONBLOCK)
    way = relay.Way(near[0], far[1], seed, 0.001, 0.1, True)
    for number in range(10):
        os.write(near[1], bytes([number]))
        way.take(lambda: 0.0)
    way.give(1.0)
    return list(os.read(far[0], 100))


print(order("1 out") == order("1 out"), order("1 out") == order("2 out"))
PY
run "$python" "$scratch/draws.py" "$project/scripts/lab.d/relay.py"
expect_status 0
expect_out 'True False'

# dial NODE PORT: one TCP connection from the front: how it went.
cat >"$scratch/dial.py" <<'PY'
import socket
import sys

try:
    socket.create_connection((sys.argv[1], int(sys.argv[2])), 1).close()
    print("connected")
except TimeoutError:
    print("no answer")
except ConnectionRefusedError:
    print("refused")
PY
dial()
{
    run "${on_front[@]}" "$python" "$scratch/dial.py" "$@"
}

it "a blocked range of ports: no answer there; other nodes and ports work"
lab block 20-30 node01
dial node01 22
expect_out 'no answer'
dial node01 31
expect_out refused
dial node02 22
expect_out connected
run env "TMPDIR=$scratch" "$project/scripts/lab" exec node01 -- ssh node02 hostname
expect_out node02
expect_fault '^ports 20-30 of node01: drop new connections: [1-9]'

it "blocked with --reject: refused at once; on loopback it works"
lab block 20-30 --reject node01
dial node01 22
expect_out refused
run env "TMPDIR=$scratch" "$project/scripts/lab" exec node01 -- \
    "$python" "$scratch/dial.py" 127.0.0.1 22
expect_out connected
lab heal node01
dial node01 22
expect_out connected

# A connection: what has come of it half a second after the file "over" is made?
cat >"$scratch/wait.py" <<'PY'
import os
import socket
import sys
import time

peer = socket.create_connection((sys.argv[1], 22), 5)
peer.recv(100)
open(sys.argv[2], "w").close()
while not os.path.exists(sys.argv[3]):
    time.sleep(0.01)
peer.settimeout(0.5)
try:
    print("ended" if peer.recv(100) == b"" else "data")
except TimeoutError:
    print("silence")
except ConnectionResetError:
    print("reset")
PY

it "kill: all processes of the node are gone, and its peers are not told"
boot=$(on node03 cat /proc/sys/kernel/random/boot_id)
run_behind "${on_front[@]}" "$python" "$scratch/wait.py" node03 "$scratch/up" \
    "$scratch/over"
within 20 "no connection to node03" test -e "$scratch/up"
lab kill node03
lab ps node03 >"$scratch/ps"
expect_empty "$scratch/ps"
: >"$scratch/over"
finish
expect_out silence
dial node03 22
expect_out 'no answer'
expect_fault '^node03 is off: [1-9]'
lab heal node03
dial node03 22
expect_out connected
[ "$(on node03 cat /proc/sys/kernel/random/boot_id)" != "$boot" ] ||
    fail "it comes back as if it had not been off"

it "heal ends everything; what ran in the lab goes with it"
lab heal
lab status >"$out"
expect_lines "$out" 9
lab down
expect_no_process
[ -z "$(find "$scratch" -maxdepth 1 -name 'gpulaunch-lab.*')" ] ||
    fail "the lab's folder is left"

it "mistakes are told, with 2 or 1, and change nothing"
make_lab --nodes 2
for words in 'cut' 'cut node01 node01' 'cut a b c' 'loss 101' 'loss node01' \
    'block 70000' 'block 9-1' 'rate 10 node01' 'rate 10mbit' 'delay 5 ' \
    'delay 9-1 node01' 'cut node01 --network 2' 'heal a b c' 'kill'; do
    # shellcheck disable=SC2086  # several words
    run env "TMPDIR=$scratch" "$project/scripts/lab" $words
    expect_status 2
    expect_lines "$err" 1
done
for words in 'cut nowhere' 'loss 5 node09' 'exec node09 true' 'rate 1mbit x'; do
    # shellcheck disable=SC2086  # several words
    run env "TMPDIR=$scratch" "$project/scripts/lab" $words
    expect_status 1
    expect_has "$err" 'there is no node .* there are: front node01 node02'
done
lab status >"$out"
expect_lines "$out" 4

done_stories
