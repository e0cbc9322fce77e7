# SPDX-License-Identifier: Apache-2.0
#
# A real sshd on each node, with host keys of its own, and the client's side:
# one key, known hosts and a configuration in each node's ~/.ssh and for
# `ssh -F LAB/ssh_config`. Sourced by scripts/lab.
# shellcheck shell=bash disable=SC2034,SC2154  # the parts share variables

lab_sshd()
{
    local action=${1:-} given=()

    [ $# -eq 0 ] || shift
    while [ $# -gt 0 ]; do
        case $1 in
        --max-startups)
            need_value "$1" $#
            max_startups=$2
            shift
            ;;
        --max-startups=*) max_startups=${1#*=} ;;
        -*) misuse "sshd: no option '$1'; try scripts/lab --help" ;;
        *) given+=("$1") ;;
        esac
        shift
    done
    [[ $max_startups =~ ^[0-9]+(:[0-9]+:[0-9]+)?$ ]] ||
        misuse "--max-startups: '$max_startups' is not like 10 or 3:100:3"
    choose_nodes ${given[@]+"${given[@]}"}
    case $action in
    up) start_sshds "${chosen_nodes[@]}" ;;
    down) stop_sshds "${chosen_nodes[@]}" ;;
    *) misuse "sshd: up or down?" ;;
    esac
}

# start_sshds NODE...: anew where one runs.
start_sshds()
{
    local node

    [[ -x /usr/bin/ssh-keygen && -x /usr/sbin/sshd ]] ||
        cannot "sshd is missing: apt-get install openssh-server openssh-client"
    [ "$(cat /proc/self/setgroups)" = allow ] ||
        cannot "sshd may not change groups in a user namespace of this kind"
    stop_sshds "$@"
    make_user_keys
    for node in "$@"; do
        make_host_key "$node"
    done
    write_known_hosts
    for node in $(all_nodes); do
        fill_home "$node"
    done
    for node in "$@"; do
        sshd_settings "$node" >"$lab/nodes/$node/sshd_config"
        within_node "$node" /usr/sbin/sshd -f "$lab/nodes/$node/sshd_config" \
            -E "$lab/nodes/$node/sshd.log" </dev/null >/dev/null ||
            die_of_sshd "$node"
    done
    # The file is written when it listens.
    for node in "$@"; do
        until_true 20 test -s "$lab/nodes/$node/sshd.pid" || die_of_sshd "$node"
    done
}

die_of_sshd()
{
    local why

    why=$(tail -n 3 "$lab/nodes/$1/sshd.log" 2>/dev/null || true)
    die "sshd does not start on $1${why:+: $why}"
}

stop_sshds()
{
    local node

    for node in "$@"; do
        end_pid "$lab/nodes/$node/sshd.pid"
    done
}

make_user_keys()
{
    [ ! -e "$lab/ssh/id_ed25519" ] || return 0
    mkdir -p "$lab/ssh"
    ssh-keygen -q -t ed25519 -N '' -C "gpulaunch-lab.$lab_id" \
        -f "$lab/ssh/id_ed25519"
    ssh_settings "$lab/ssh" >"$lab/ssh_config"
}

make_host_key()
{
    local key=$lab/nodes/$1/ssh_host_ed25519_key

    [ -e "$key" ] || ssh-keygen -q -t ed25519 -N '' -C "$1" -f "$key"
}

write_known_hosts()
{
    local node index=0 network address key list

    while read -r node _; do
        key=$lab/nodes/$node/ssh_host_ed25519_key.pub
        list=$node
        for ((network = 1; network <= networks; network++)); do
            [ "$network" -eq 1 ] || list+=",$node-net2"
            for address in $(addresses "$network" "$index"); do
                list+=",$address"
            done
        done
        [ ! -e "$key" ] || echo "$list $(cut -d' ' -f1,2 "$key")"
        index=$((index + 1))
    done <"$lab/nodes.list" >"$lab/ssh/known_hosts.new"
    mv "$lab/ssh/known_hosts.new" "$lab/ssh/known_hosts"
}

# fill_home NODE: its ~/.ssh. What the user has changed there stays.
fill_home()
{
    local folder=$lab/nodes/$1/home/.ssh

    if [ ! -e "$folder" ]; then
        mkdir "$folder"
        cp "$lab"/ssh/id_ed25519{,.pub} "$folder"
        cp "$lab/ssh/id_ed25519.pub" "$folder/authorized_keys"
        ssh_settings "$folder" >"$folder/config"
    fi
    cp "$lab/ssh/known_hosts" "$folder/known_hosts"
}

ssh_settings()
{
    cat <<TEXT
Host *
    User $(id -un)
    IdentityFile $1/id_ed25519
    IdentitiesOnly yes
    UserKnownHostsFile $1/known_hosts
    StrictHostKeyChecking yes
    UpdateHostKeys no
TEXT
}

sshd_settings()
{
    local folder=$lab/nodes/$1

    cat <<TEXT
Port 22
HostKey $folder/ssh_host_ed25519_key
PidFile $folder/sshd.pid
AuthorizedKeysFile .ssh/authorized_keys
AuthenticationMethods publickey
PermitRootLogin prohibit-password
UsePAM no
UseDNS no
PrintMotd no
MaxStartups $max_startups
LogLevel VERBOSE
SetEnv TMPDIR=$folder/tmp XDG_RUNTIME_DIR=$folder/run
Subsystem sftp internal-sftp
TEXT
}
