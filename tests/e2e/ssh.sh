#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Nodes that are reached by ssh, with the real sshd, in the network lab.
. "$(dirname "$0")/../lib/lab.sh"

make_lab --nodes 4 --sshd --id ssh
nodes=$scratch/gpulaunch-lab.ssh/nodes

# on_hosts ARGUMENT...: gpulaunch on the front.
on_hosts()
{
    run "${on_front[@]}" "$bin/gpulaunch" "$@"
}

# Without waiting; front_end is gpulaunch itself, since exec becomes it.
on_hosts_behind()
{
    run_behind "${on_front[@]}" "$bin/gpulaunch" "$@"
}

# So many sleeps of this length are on the nodes.
sleeps()
{
    [ "$(lab ps | grep -c "^node.* sleep $1\$")" = "$2" ]
}

# A failure that is one node's, told in the last line; nobody else is left.
expect_failed()
{
    expect_status "$1"
    expect_last_line "$2"
    expect_idle_nodes 20
}

it "ranks run on the hosts that are named, in that order, as their own machines"
on_hosts --hosts 'node03,node[01-02]' --self-test off -- \
    sh -c 'echo "$RANK of $WORLD_SIZE on $(hostname), master $MASTER_ADDR"'
expect_status 0
expect_has "$out" '^\[0\] 0 of 3 on node03, master 10\.10\.1\.3$'
expect_has "$out" '^\[1\] 1 of 3 on node01, master 10\.10\.1\.3$'
expect_has "$out" '^\[2\] 2 of 3 on node02, master 10\.10\.1\.3$'
expect_empty "$err"
expect_idle_nodes 20

it "the self-test and the example run over four of them"
on_hosts --hosts 'node[01-04]' -- "$python" \
    "$project/docs/examples/train.py" --workers 4
expect_status 0
expect_has "$err" 'self-test passed on host memory over TCP'
expect_has "$out" '^\[3\] worker 3 of 4: loss 0\.154961'
expect_idle_nodes 20

it "a host file's slots are ranks; the order and whose it is are told"
printf 'node02 slots=2 # second\nnode01 slots=2\n' >"$scratch/hosts"
on_hosts --hostfile "$scratch/hosts" --self-test off --explain -- \
    sh -c 'echo "$RANK $(hostname)"'
expect_status 0
expect_has "$out" '^\[3\] 3 node01$'
expect_has "$err" "^  2 nodes of $scratch/hosts, in its order: node\[02,01\]$"
on_hosts -w node03,node01 -v --self-test off -- true
expect_status 0
expect_has "$err" '2 nodes of -w, in natural order: node\[01,03\]$'

it "a host file that is not there is an error, and so is one that is wrong"
on_hosts --hostfile "$scratch/none" -- true
expect_failed 125 "--hostfile: cannot open $scratch/none"
printf 'node01\nnode02 slots=x\n' >"$scratch/hosts"
on_hosts --hostfile "$scratch/hosts" -- true
expect_failed 125 "hosts:2:14: slots is a number from 1 to 4096"

it "the first failing rank's code and words come home"
on_hosts --hosts 'node[01-03]' --self-test off -- \
    sh -c '[ "$RANK" != 1 ] || { echo bad >&2; exit 7; }; sleep 300'
expect_failed 7 'rank 1 on node node02 .* exited with code 7'
expect_has "$err" 'bad'

it "a name that nobody knows is the node's, the other is cleaned up"
on_hosts --hosts node01,nosuch --self-test off -- sleep 300
expect_failed 125 'node nosuch did not join: its name is not known'
on_hosts --hosts nosuch -- true
expect_failed 125 'node nosuch: its name is not known .* --address ADDR'

it "a key that is not taken"
mv "$nodes/node02/home/.ssh/authorized_keys" "$scratch/keys"
on_hosts --hosts 'node[01-02]' --self-test off -- sleep 300
expect_failed 125 'node node02 did not join: ssh was not let in .*Permission denied'
mv "$scratch/keys" "$nodes/node02/home/.ssh/authorized_keys"

it "a host key that is not known, and one that has changed"
on_hosts --hosts node01 --self-test off --ssh-command \
    'ssh -o UserKnownHostsFile=/dev/null -o GlobalKnownHostsFile=/dev/null -o StrictHostKeyChecking=yes' -- true
expect_failed 125 'node node01 did not join: its host key is not known'
{ printf 'node01 '; ssh-keygen -q -t ed25519 -N '' -f "$scratch/key" &&
    cut -d' ' -f1,2 "$scratch/key.pub"; } >"$scratch/known"
on_hosts --hosts node01 --self-test off --ssh-command \
    "ssh -o UserKnownHostsFile=$scratch/known -o StrictHostKeyChecking=yes -o HostKeyAlgorithms=ssh-ed25519" -- true
expect_failed 125 'node node01 did not join: its host key is not the one that was known'

it "an ssh port that refuses, and one that is silent, within the time to join"
lab block --reject 22 node02
on_hosts --hosts 'node[01-02]' --self-test off -- sleep 300
expect_failed 75 'node node02 did not join: nothing listens on its ssh port'
lab heal
lab block 22 node02
on_hosts --hosts 'node[01-02]' --self-test off --join-timeout 4s -- sleep 300
expect_failed 75 'node node02 did not join: ssh did not get through in time'
expect_within_ms 10000
lab heal

it "a node whose turn has not come is not blamed: those before it are named"
cat >"$scratch/silent" <<'SCRIPT'
#!/bin/sh
case " $* " in *" -G "*) exec echo hostname 127.0.0.1 ;; esac
exec sleep 300
SCRIPT
chmod +x "$scratch/silent"
on_hosts --hosts 'h[1-40]' --ssh-command "$scratch/silent" --self-test off \
    --join-timeout 4s -- true
expect_failed 75 'node h33 did not join: it was not tried, since its turn had not come \(32 sessions still on the way: h\[1-32\]\); try by hand .*--join-timeout'
expect_within_ms 10000

it "no worker there, one that may not be executed, one of another release"
on_hosts --hosts 'node[01-02]' --worker-path /nonexistent/worker -- true
expect_failed 127 'node node0[12] did not join: gpulaunch-worker is not there'
printf 'x' >"$scratch/plain"
on_hosts --hosts 'node[01-02]' --worker-path "$scratch/plain" -- true
expect_failed 126 'node node0[12] did not join: gpulaunch-worker cannot be executed'
cat >"$scratch/newer" <<'SCRIPT'
#!/bin/sh
echo "gpulaunch-worker remote 1 9.0.0 7 9"
exec cat
SCRIPT
cat >"$scratch/older" <<'SCRIPT'
#!/bin/sh
echo 'gpulaunch-worker: unexpected argument "remote"' >&2
exit 125
SCRIPT
cat >"$scratch/unlinked" <<'SCRIPT'
#!/bin/sh
echo "$0: error while loading shared libraries: libuv.so.1: cannot open" >&2
exit 127
SCRIPT
chmod +x "$scratch/newer" "$scratch/older" "$scratch/unlinked"
on_hosts --hosts 'node[01-02]' --worker-path "$scratch/newer" -- true
expect_failed 125 'is of another release .*9\.0\.0 speaks protocol 7 to 9, this gpulaunch'
on_hosts --hosts 'node[01-02]' --worker-path "$scratch/older" -- true
expect_failed 125 'is no worker of this release'
on_hosts --hosts 'node[01-02]' --worker-path "$scratch/unlinked" -- true
expect_failed 125 'lacks a library there .*libuv\.so\.1'

it "a worker that cannot reach the coordinator says where it has tried"
lab block 1024-65535 front
on_hosts --hosts 'node[01-02]' --self-test off --join-timeout 12s -- sleep 300
expect_failed 40 'from there the coordinator cannot be reached .*10\.10\.0\.1:[0-9]+ within [0-9]'
lab heal

it "--address is taken as it is, or refused"
on_hosts --hosts node01 --self-test off --address 10.10.0.1 -- true
expect_status 0
on_hosts --hosts node01 --address 192.0.2.1 -- true
expect_failed 125 '--address: 192\.0\.2\.1 is no address of this machine'
on_hosts --hosts node01 --address front -- true
expect_failed 125 '--address: "front" is no literal address'

it "--insecure is refused for nodes that are elsewhere"
on_hosts --hosts node01 --insecure -- true
expect_failed 125 '--insecure'

it "--copy-worker brings the program, runs the self-test, and leaves no file"
on_hosts --hosts 'node[01-02]' --copy-worker -- sh -c 'echo "copy $RANK"'
expect_status 0
expect_has "$out" '^\[1\] copy 1$'
expect_has "$err" 'self-test passed'
expect_idle_nodes 20
left=$(find "$nodes"/node*/tmp -mindepth 1)
[ -z "$left" ] || fail "left: $left"

it "--copy-worker: what was cut short, or has no room, is not run, and removed"
cat >"$scratch/cut" <<'SCRIPT'
#!/bin/sh
case " $* " in *" -G "*) exec echo hostname 127.0.0.1 ;; esac
for command; do :; done
head -c 100000 | sh -c "$command"
SCRIPT
chmod +x "$scratch/cut"
on_hosts --hosts h --copy-worker --ssh-command "$scratch/cut" -- true
expect_failed 127 'node h did not join: --copy-worker failed there \(gpulaunch-worker was not copied: 100000 of [0-9]+ bytes came\); is there room'
on node01 mount -t tmpfs -o size=1m,mode=1777 small "$nodes/node01/tmp"
on_hosts --hosts node01 --copy-worker -- true
expect_failed 127 'node node01 did not join: --copy-worker failed there .*No space left on device'
on node01 umount "$nodes/node01/tmp"
# Between the two halves of the program the shell there is told to end.
cat >"$scratch/half" <<SCRIPT
#!/bin/sh
case " \$* " in *" -G "*) exec echo hostname 127.0.0.1 ;; esac
for command; do :; done
(head -c 100000; until [ -e "$scratch/on" ]; do sleep 0.1; done) |
    { exec 3<&0; sh -c "\$command" <&3 & echo \$! >"$scratch/shell"; wait; }
SCRIPT
chmod +x "$scratch/half"
copies()
{
    [ "$(find "$nodes/front/tmp" -mindepth 1 | wc -l)" = "$1" ]
}
on_hosts_behind --hosts h --copy-worker --ssh-command "$scratch/half" -- true
within 20 "no part of the program" copies 2
kill -TERM "$(cat "$scratch/shell")"
touch "$scratch/on"
within 20 "a part of the program is left" copies 0
finish
expect_idle_nodes 20

it "a session that is lost ends nothing; the node ends with the job"
on_hosts_behind --hosts 'node[01-02]' --self-test off -- \
    sh -c "while [ ! -e $scratch/go ]; do sleep 0.1; done; echo went on"
ssh_pids()
{
    mapfile -t sessions < <(pgrep -x ssh -P "$front_end")
    [ "${#sessions[@]}" = 2 ] && [ "$(lab ps | grep -c '^node.* sh -c while')" = 2 ]
}
within 20 "the ranks did not start" ssh_pids
kill -KILL "${sessions[@]}"
sessions_gone()
{
    ! pgrep -x ssh -P "$front_end" >/dev/null
}
within 10 "ssh lives" sessions_gone
touch "$scratch/go"
finish
expect_status 0
expect_has "$out" '^\[0\] went on$'
expect_has "$out" '^\[1\] went on$'
expect_idle_nodes 20

it "Ctrl-C ends all of it everywhere"
on_hosts_behind --hosts 'node[01-04]' --self-test off -- sleep 311
within 20 "the ranks did not start" sleeps 311 4
kill -INT "$front_end"
finish
expect_failed 130 'canceled by signal 2'

it "Ctrl-C while ssh is on its way leaves nothing either"
lab block 22 node02
on_hosts_behind --hosts 'node[01-02]' --self-test off -- sleep 312
ssh_starts()
{
    [ "$(pgrep -x ssh -P "$front_end" | wc -l)" = 2 ]
}
within 20 "no session" ssh_starts
kill -INT "$front_end"
finish
expect_status 130
expect_idle_nodes 20
lab heal

it "a front end that is killed takes all of it along"
on_hosts_behind --hosts 'node[01-02]' --self-test off -- sleep 313
within 20 "the ranks did not start" sleeps 313 2
kill -KILL "$front_end"
finish
expect_idle_nodes 30

it "64 logical nodes through one sshd that lets few log in at a time"
lab sshd up --max-startups 3:100:5 node01
bound_seconds=180 on_hosts --hosts 'n[1-64]' --ssh-command 'ssh -o HostName=node01' \
    --self-test off -- true
expect_status 0
expect_idle_nodes 20

it "that this machine has no descriptors left is told as that"
lab sshd up node01
run "${on_front[@]}" sh -c 'ulimit -n 150; exec "$@"' sh "$bin/gpulaunch" \
    --hosts 'n[1-64]' --ssh-command 'ssh -o HostName=node01' \
    --self-test off -- true
expect_failed 125 'node n[0-9]+ did not join: this machine cannot run ssh for it \(.*Too many open files; raise ulimit -n\)'

lab down ssh
make_lab --nodes 2 --sshd --no-dns --id literals

it "no name resolves: literals are kept byte for byte"
on_hosts --hosts 10.10.1.1,10.10.1.2 --self-test off -- \
    sh -c 'echo "$RANK $MASTER_ADDR $TF_CONFIG"'
expect_status 0
expect_has "$out" '^\[1\] 1 10\.10\.1\.1 .*"10\.10\.1\.1:[0-9]+","10\.10\.1\.2:[0-9]+"'
expect_idle_nodes 20

done_stories
