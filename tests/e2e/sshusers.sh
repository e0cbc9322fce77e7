#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What users and their administrators have set up for ssh, with the real ssh
# and sshd in the network lab: banners, ~/.ssh/config, login shells.
. "$(dirname "$0")/../lib/lab.sh"

make_lab --nodes 2 --sshd --id users
nodes=$scratch/gpulaunch-lab.users/nodes
user=$(id -un)
config=$nodes/front/home/.ssh/config
cp "$config" "$scratch/config"

# on_hosts ARGUMENT...: gpulaunch on the front.
on_hosts()
{
    run "${on_front[@]}" "$bin/gpulaunch" "$@"
}

# expect_both: a rank ran on each node, and nothing is left.
expect_both()
{
    expect_status 0
    expect_has "$out" '^\[0\] here node01$'
    expect_has "$out" '^\[1\] here node02$'
    expect_idle_nodes 20
}

# on_both ARGUMENT...: the shortest job that shows whether sessions work.
on_both()
{
    on_hosts --hosts 'node[01-02]' --self-test off "$@" -- \
        sh -c 'echo "here $(hostname)"'
}

# user_has LINE...: for all hosts, before what the lab has.
user_has()
{
    { echo 'Host *'; printf '    %s\n' "$@"; cat "$scratch/config"; } >"$config"
}

# login_shell SHELL: of the user, on both nodes.
login_shell()
{
    local node

    for node in node01 node02; do
        awk -F: -v OFS=: -v user="$user" -v shell="$1" \
            '$1 == user { $7 = shell } { print }' \
            "$nodes/$node/etc/passwd" >"$scratch/passwd"
        cat "$scratch/passwd" >"$nodes/$node/etc/passwd"
    done
}

it "a banner with the words of every fault changes none"
cat >"$scratch/banner" <<'TEXT'
*** AUTHORIZED USE ONLY. Permission denied to all others. ***
Connection refused, Connection timed out, No route to host, has changed,
Host key verification failed, Could not resolve hostname, usage: ssh,
Connection closed, error while loading shared libraries
TEXT
for node in node01 node02; do
    echo "Banner $scratch/banner" >>"$nodes/$node/sshd_config"
    kill -HUP "$(cat "$nodes/$node/sshd.pid")"
done
has_banner()
{
    on front ssh -o BatchMode=yes "$1" true 2>&1 | grep -q AUTHORIZED
}
within 20 "no banner" has_banner node01
within 20 "no banner" has_banner node02
on_both
expect_both
expect_empty "$err"
on_hosts --hosts 'node[01-02]' --worker-path /nonexistent/worker -- true
expect_status 127
expect_last_line 'node node0[12] did not join: gpulaunch-worker is not there \(.*/nonexistent/worker'
expect_lacks "$err" AUTHORIZED
lab block 1024-65535 front
on_hosts --hosts 'node[01-02]' --self-test off --join-timeout 4s -- true
expect_status 40
expect_last_line 'cannot be reached \(gpulaunch-worker: node0[12]: no connection'
lab heal
mv "$nodes/node02/home/.ssh/authorized_keys" "$scratch/keys"
on_hosts --hosts 'node[01-02]' --self-test off -- sleep 300
expect_status 125
expect_last_line "ssh was not let in \($user@node02: Permission denied"
expect_idle_nodes 20
mv "$scratch/keys" "$nodes/node02/home/.ssh/authorized_keys"

for line in 'RemoteCommand tmux attach' 'RequestTTY force' 'LogLevel QUIET' \
    'StdinNull yes' 'ForkAfterAuthentication yes' 'SessionType none' \
    'Tunnel yes'; do
    it "sessions in spite of $line"
    user_has "$line"
    on_both
    expect_both
done

it "sessions in spite of forwardings that only one can have"
user_has 'LocalForward 18080 localhost:80' 'RemoteForward 18081 localhost:80' \
    'DynamicForward 18082' 'ExitOnForwardFailure yes'
on_both
expect_both

it "a LocalCommand is not run"
user_has 'PermitLocalCommand yes' 'LocalCommand cat; touch local-command'
on_both
expect_both
on_both --copy-worker
expect_both
[ ! -e local-command ] || fail "LocalCommand has run"

it "a fault is told though ssh is to be quiet"
user_has 'LogLevel QUIET'
mv "$nodes/node02/home/.ssh/authorized_keys" "$scratch/keys"
on_hosts --hosts 'node[01-02]' --self-test off -- sleep 300
expect_status 125
expect_last_line 'ssh was not let in .*Permission denied'
expect_idle_nodes 20
mv "$scratch/keys" "$nodes/node02/home/.ssh/authorized_keys"

it "a session is nobody else's way, and takes one that stands"
user_has 'ControlMaster auto' "ControlPath $scratch/way-%h" 'ControlPersist yes'
on_both
expect_both
[ -z "$(find "$scratch" -name 'way-*')" ] || fail "a way is left open"
on front ssh -fN node01 >/dev/null 2>&1
mv "$nodes/node01/home/.ssh/authorized_keys" "$scratch/keys"
on_hosts --hosts 'node[01-02]' --self-test off -- sh -c 'echo "here $(hostname)"'
expect_status 0
expect_has "$out" '^\[0\] here node01$'
mv "$scratch/keys" "$nodes/node01/home/.ssh/authorized_keys"
on front ssh -O exit node01 2>/dev/null
expect_idle_nodes 20

it "through a jump host, whose own fault is told"
{ printf 'Host node02\n    ProxyJump node01\n'; cat "$scratch/config"; } >"$config"
on_both
expect_both
mv "$nodes/node01/home/.ssh/authorized_keys" "$scratch/keys"
on_hosts --hosts node02 --self-test off -- true
expect_status 125
expect_last_line "ssh was not let in \($user@node01: Permission denied"
mv "$scratch/keys" "$nodes/node01/home/.ssh/authorized_keys"
cp "$scratch/config" "$config"

odd=$scratch/"it's a \\ path!"
mkdir "$odd"
ln -s "$(readlink -f "$bin/gpulaunch-worker")" "$odd/worker !!"
for shell in bash csh fish; do
    path=$(command -v "$shell") || {
        echo "skipped: a login shell $shell: it is not installed"
        continue
    }
    it "$shell as the login shell"
    login_shell "$path"
    on_both
    expect_both
    on_both --worker-path "$odd/worker !!"
    expect_both
    on_both --copy-worker
    expect_both
    on_hosts --hosts 'node[01-02]' --worker-path "$odd/none!" -- true
    expect_status 127
    expect_last_line 'node node0[12] did not join: gpulaunch-worker is not there'
    expect_idle_nodes 20
done

done_stories
