#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The network lab's machines: names, addresses, interfaces, sshd; and that
# nothing of it is left afterwards.
. "$(dirname "$0")/../lib/lab.sh"

# on_node NODE COMMAND...: its end in status, what it said in $out and $err.
on_node()
{
    run env "TMPDIR=$scratch" "$project/scripts/lab" exec "$1" -- "${@:2}"
}

# What of a lab could be seen on the machine; other tests may change the rest.
machine_state()
{
    ip -o link | cut -d: -f2 |
        grep -E '^ ([ntdb][0-9]+-[12]|net[12]|docker0|veth5a1b2c3)' || true
    ip -o address | awk '{ print $4 }' | grep -E '^(10\.[12]0\.|fd00:[12]0:)' ||
        true
    grep -E '^lab |gpulaunch-lab\.' /proc/self/mounts || true
    find "$scratch" -mindepth 1 -maxdepth 1 -name 'gpulaunch-lab.*'
    grep -lF "$scratch/gpulaunch-lab." /proc/[0-9]*/mountinfo 2>/dev/null ||
        true
}

machine_state >"$scratch/before"

it "up prints the lab's folder, which is the user's alone"
status=0
lab up --id first --nodes 3 --sshd --decoy --second-network \
    --interfaces eth0,ens5,ib0 >"$out" 2>"$err" || status=$?
[ "$status" -ne 77 ] || skip "$(cat "$err")"
expect_status 0
expect_out "$scratch/gpulaunch-lab.first"
[ "$(stat -c %a "$scratch/gpulaunch-lab.first")" = 700 ] ||
    fail "others may read the lab's folder"

it "each node has its host name, home and folder for temporary files"
for node in front node01 node03; do
    on_node "$node" sh -c 'hostname; cat /etc/hostname; cd; pwd; echo $TMPDIR'
    folder=$scratch/gpulaunch-lab.first/nodes/$node
    expect_out "$node"$'\n'"$node"$'\n'"$folder/home"$'\n'"$folder/tmp"
done

it "each node has a boot ID and a number of its own"
for file in /proc/sys/kernel/random/boot_id /etc/machine-id; do
    [ -e "$file" ] || continue
    [ "$(for node in front node01 node02 node03; do
        on "$node" cat "$file"
    done | cat "$file" - | sort -u | wc -l)" -eq 5 ] || fail "$file is shared"
done

it "what a node makes has the mask of who called"
for mask_here in 022 027; do
    (umask "$mask_here" && on node01 sh -c umask) >"$out"
    expect_out "0$mask_here"
done

it "exec becomes the command: its exit code, its folder, and signals reach it"
on_node node01 sh -c 'exit 7'
expect_status 7
on_node node01 pwd
expect_out "$PWD"
run_behind "${on_front[@]}" sleep 300
sleeps()
{
    [ "$(cat "/proc/$front_end/comm")" = sleep ]
}
within 20 "exec did not become the command" sleeps
lab ps >"$out"
expect_out "front $front_end sleep 300"
kill -TERM "$front_end"
finish
expect_status 143
expect_idle_nodes

it "interfaces are called as asked for, in turn, on both networks"
on_node node01 ls /sys/class/net
expect_has "$out" '^ens5$'
expect_has "$out" '^ens6$'
expect_lacks "$out" '^(eth0|ib0)$'
on_node node02 ip -4 -o address show
expect_has "$out" ' ib0 .*10\.10\.1\.2/16 '
expect_has "$out" ' ib1 .*10\.20\.1\.2/16 '

it "the decoy is the same on every node, up, and leads nowhere"
for node in front node01 node02 node03; do
    on_node "$node" ip -4 -o address show dev docker0
    expect_has "$out" ' 172\.17\.0\.1/16 '
    on_node "$node" cat /sys/class/net/docker0/operstate
    expect_lacks "$out" down
done

it "names resolve on every node to the nodes' addresses"
on_node node03 getent ahostsv4 node02
expect_has "$out" '^10\.10\.1\.2 '
on_node node03 getent ahostsv4 front-net2
expect_has "$out" '^10\.20\.0\.1 '

it "sshd answers on port 22 with a host key of its own, on either network"
for node in node01 node02 node03; do
    on_node front ssh "$node" hostname
    expect_status 0
    expect_out "$node"
done
on_node node01 ssh node02-net2 'hostname; echo $HOME'
expect_out node02$'\n'"$scratch/gpulaunch-lab.first/nodes/node02/home"
[ "$(cut -d' ' -f2,3 "$scratch"/gpulaunch-lab.first/ssh/known_hosts |
    sort -u | wc -l)" -eq 4 ] || fail "the host keys are not four"

it "the same by the lab's ssh_config, and not with another key"
on_node front ssh -F "$scratch/gpulaunch-lab.first/ssh_config" 10.10.1.3 hostname
expect_out node03
ssh-keygen -q -t ed25519 -N '' -f "$scratch/other"
on_node front ssh -o BatchMode=yes -o IdentityFile="$scratch/other" \
    -F /dev/null -o UserKnownHostsFile=/dev/null \
    -o StrictHostKeyChecking=no node03 true
expect_status 255
expect_has "$err" 'Permission denied \(publickey\)'

it "sshd down: connections are refused; up: the same key is there again"
lab sshd down node02
on_node front ssh node02 true
expect_status 255
expect_has "$err" 'Connection refused'
(
    umask 022
    lab sshd up node02
)
on_node front ssh node02 'hostname; umask'
expect_out $'node02\n0022'

it "MaxStartups: of many sessions that do not authenticate, so many are heard"
lab sshd up --max-startups 3:100:3 node02
# Ten connections that say nothing: how many got sshd's first line.
cat >"$scratch/strangers.py" <<'PY'
import socket
import sys

files = [socket.create_connection((sys.argv[1], 22)).makefile("rb")
         for _ in range(10)]
print(sum(file.readline().startswith(b"SSH-2.0") for file in files))
PY
on_node front "$python" "$scratch/strangers.py" node02
expect_out 3
on_node front "$python" "$scratch/strangers.py" node03
expect_out 10

it "a lab of the same ID in another folder is another lab"
mkdir "$scratch/other.d"
TMPDIR=$scratch/other.d "$project/scripts/lab" up --id first --nodes 1 >"$out"
expect_out "$scratch/other.d/gpulaunch-lab.first"
TMPDIR=$scratch/other.d "$project/scripts/lab" down first
on_node node03 hostname
expect_out node03

it "two labs side by side do not meet"
lab up --id second --names alpha,beta --ipv6-only --no-dns >"$out" 2>"$err"
lab list >"$out"
expect_lines "$out" 2
run env "TMPDIR=$scratch" "$project/scripts/lab" status
expect_status 1
expect_has "$err" 'several labs: first second; choose one'

second=(--lab second)
on_second()
{
    run env "TMPDIR=$scratch" "$project/scripts/lab" "${second[@]}" exec "$1" \
        -- "${@:2}"
}

it "IPv6-only: no IPv4 address but loopback, no IPv4 route"
on_second alpha ip -4 -o address show
expect_lines "$out" 1
expect_has "$out" ' lo .*127\.0\.0\.1/8 '
on_second alpha ip -4 route
expect_empty "$out"
on_second alpha ip -6 -o address show dev eth0
expect_has "$out" ' fd00:10::1:1/64 '

it "dual stack: addresses of both kinds"
lab up --id third --nodes 1 --dual-stack >"$out" 2>"$err"
run env "TMPDIR=$scratch" "$project/scripts/lab" --lab third exec node01 -- \
    getent ahosts front
expect_has "$out" '^10\.10\.0\.1 '
expect_has "$out" '^fd00:10::1 '
lab down third

it "no DNS: no name resolves, at once; literals do"
on_second alpha getent hosts beta
expect_status 2
on_second alpha getent hosts example.org
expect_status 2
expect_within_ms 2000
on_second alpha getent ahosts fd00:10::1:2
expect_status 0

it "no DNS: ssh by literal"
lab --lab second sshd up
on_second front ssh fd00:10::1:2 hostname
expect_out beta
on_second front ssh beta hostname
expect_status 255
expect_has "$err" 'Could not resolve hostname beta'

it "down ends one lab, whatever runs in it, and not the other"
run_behind env "TMPDIR=$scratch" "$project/scripts/lab" --lab second exec \
    alpha -- setsid sh -c 'trap "" TERM; sleep 300 & wait'
has_guests()
{
    [ "$(lab --lab second ps | wc -l)" -ge 2 ]
}
within 20 "the processes on alpha did not come up" has_guests
lab down second
finish
expect_status 137
expect_no_process
lab list >"$out"
expect_lines "$out" 1
on_node node01 hostname
expect_out node01

it "after a crash that took the folder and a holder: down finds the rest"
kill -KILL "$(cat "$scratch/gpulaunch-lab.first/nodes/node01/holder.pid")"
node_is_gone()
{
    on_node node01 true
    [ "$status" -ne 0 ]
}
within 20 "node01 is still there" node_is_gone
expect_has "$err" "node 'node01' is gone"
rm -rf "$scratch/gpulaunch-lab.first"
lab down first

it "nothing is left of it: no process, link, mount, namespace or file"
machine_state >"$scratch/after"
diff "$scratch/before" "$scratch/after" >"$out" || fail "not as it was"
run env "TMPDIR=$scratch" "$project/scripts/lab" down first
expect_status 1
expect_has "$err" 'there is no lab'

it "an up that is interrupted leaves nothing"
run_behind env "TMPDIR=$scratch" "$project/scripts/lab" up --id first \
    --nodes 30
within 20 "no lab was begun" test -e "$scratch/gpulaunch-lab.first"
kill -INT "$front_end"
finish
expect_status 130
machine_state >"$scratch/after"
diff "$scratch/before" "$scratch/after" >"$out" || fail "not as it was"

it "root without its rights: 77 and why, and nothing is left"
run setpriv --bounding-set -all --inh-caps -all env "TMPDIR=$scratch" \
    "$project/scripts/lab" up
expect_status 77
expect_lines "$err" 1
expect_has "$err" 'cannot make a lab here: .*not permitted'
machine_state >"$scratch/after"
diff "$scratch/before" "$scratch/after" >"$out" || fail "not as it was"

it "mistakes are told, with 2"
for words in 'up --nodes 0' 'up --names a,a' 'up --names switch' \
    'up --max-startups x' 'up --id a/b' 'up --nodez 3' 'dance' ''; do
    # shellcheck disable=SC2086  # several words
    run env "TMPDIR=$scratch" "$project/scripts/lab" $words
    expect_status 2
    expect_lines "$err" 1
done

it "--help names every command"
run "$project/scripts/lab" --help
expect_status 0
for word in up down list status exec ps sshd slurm cut loss block rate delay \
    kill heal; do
    expect_has "$out" "^  $word "
done

done_stories
