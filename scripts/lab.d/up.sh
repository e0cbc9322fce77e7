# SPDX-License-Identifier: Apache-2.0
#
# `lab up` and `lab down`. Sourced by scripts/lab.
# shellcheck shell=bash disable=SC2034,SC2154  # the parts share variables

networks=1
family=4
dns=yes
decoy=no
max_startups=10:30:100
with_sshd=no
node_count=2
names=()
interfaces=(eth0)
interrupted=

lab_up()
{
    lab_id=
    parse_up "$@"
    [ "${#names[@]}" -gt 0 ] || number_names
    check_up
    need_root
    preflight
    # While the folder is made a signal waits: before that there is nothing to
    # be removed, and after it there is.
    trap 'interrupted=130' INT
    trap 'interrupted=143' TERM
    make_folder
    trap give_up EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    [ -z "$interrupted" ] || exit "$interrupted"
    write_settings
    start_nodes
    build_network
    [ "$with_sshd" = no ] || start_sshds "${names[@]}"
    mv "$lab/settings.new" "$lab/settings"
    trap - EXIT INT TERM
    echo "$lab"
}

# An `up` that fails, or is interrupted, leaves nothing.
give_up()
{
    local code=$?

    trap - EXIT
    end_lab || true
    exit "$code"
}

parse_up()
{
    while [ $# -gt 0 ]; do
        case $1 in
        --*=*) set -- "${1%%=*}" "${1#*=}" "${@:2}" ;;
        esac
        case $1 in
        --nodes | --names | --interfaces | --max-startups | --id)
            need_value "$1" $#
            parse_value "$1" "$2"
            shift
            ;;
        --second-network) networks=2 ;;
        --ipv6-only) family=6 ;;
        --dual-stack) family=46 ;;
        --no-dns) dns=no ;;
        --decoy) decoy=yes ;;
        --sshd) with_sshd=yes ;;
        -h | --help) usage && exit 0 ;;
        *) misuse "up: no option '$1'; try scripts/lab --help" ;;
        esac
        shift
    done
}

parse_value()
{
    case $1 in
    --nodes) node_count=$2 ;;
    --names) IFS=, read -r -a names <<<"front,$2" ;;
    --interfaces) IFS=, read -r -a interfaces <<<"$2" ;;
    --max-startups) max_startups=$2 ;;
    --id) lab_id=$2 ;;
    esac
}

# node01 to node16; as many digits as the largest needs, two at least.
number_names()
{
    local width=${#node_count} i

    [[ $node_count =~ ^[1-9][0-9]{0,3}$ ]] ||
        misuse "--nodes: '$node_count' is not a number from 1 to 9999"
    [ "$width" -ge 2 ] || width=2
    names=(front)
    for ((i = 1; i <= node_count; i++)); do
        names+=("$(printf "node%0${width}d" "$i")")
    done
}

check_up()
{
    local name

    for name in "${names[@]}"; do
        [[ $name =~ ^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$ ]] ||
            misuse "'$name' is no host name: small letters, digits and -"
        [ "$name" != switch ] || misuse "a node cannot be called 'switch'"
    done
    name=$(printf '%s\n' "${names[@]}" | sort | uniq -d)
    [ -z "$name" ] || misuse "two nodes of the same name: $name"
    for name in "${interfaces[@]}"; do
        [[ $name =~ ^[a-z][a-z0-9]{0,12}$ ]] ||
            misuse "'$name' is no name for an interface"
    done
    [[ $max_startups =~ ^[0-9]+(:[0-9]+:[0-9]+)?$ ]] ||
        misuse "--max-startups: '$max_startups' is not like 10 or 3:100:3"
    [[ $lab_id =~ ^[A-Za-z0-9_-]*$ ]] ||
        misuse "--id: '$lab_id' is not made of letters, digits, - and _"
}

# What this machine must grant, seen by doing it once and leaving it.
preflight()
{
    local tool why

    for tool in ip:iproute2 tc:iproute2 nft:nftables unshare:util-linux \
        hostname:hostname; do
        command -v "${tool%:*}" >/dev/null ||
            cannot "${tool%:*} is missing: apt-get install ${tool#*:}"
    done
    [[ $labs_folder =~ ^/[A-Za-z0-9/._+@:-]*$ ]] ||
        cannot "TMPDIR is '$labs_folder'; take an absolute path of plain characters"
    for tool in "$labs_folder" "$project"; do
        case $(realpath "$tool")/ in
        /run/* | /dev/shm/* | /sys/*)
            cannot "$tool is in a folder that each node has for itself"
            ;;
        esac
    done
    why=$(unshare --net --uts --mount --ipc -- "$parts/node" --try 2>&1) ||
        cannot "${why:-namespaces are refused}"
}

make_folder()
{
    if [ -z "$lab_id" ]; then
        lab=$(mktemp -d "$labs_folder/gpulaunch-lab.XXXXXX") ||
            die "cannot make a folder in $labs_folder"
        lab_id=${lab##*.}
    else
        lab=$(folder_of "$lab_id")
        mkdir -m 700 "$lab" || die "is lab $lab_id up already? it has" \
            "to go first: scripts/lab down $lab_id"
    fi
}

# The file is called `settings` when the lab is whole.
write_settings()
{
    local i=0 name network interface line

    printf '%s\n' "networks=$networks" "family=$family" "dns=$dns" \
        "decoy=$decoy" "max_startups=$max_startups" >"$lab/settings.new"
    for name in "${names[@]}"; do
        interface=${interfaces[$((i % ${#interfaces[@]}))]}
        line="$name $interface"
        for ((network = 2; network <= networks; network++)); do
            interface=$(next_interface "$interface")
            line+=" $interface"
        done
        echo "$line"
        i=$((i + 1))
    done >"$lab/nodes.list"
    : >"$lab/faults"
    hosts_text >"$lab/hosts"
}

# node_files NODE: what its namespaces show instead of the machine's files.
node_files()
{
    local folder=$lab/nodes/$1 user

    user=$(id -un)
    mkdir -p "$folder"/{home,tmp,run,etc}
    new_boot "$1"
    tr -d - </proc/sys/kernel/random/uuid >"$folder/etc/machine-id"
    cp "$lab/hosts" "$folder/etc/hosts"
    resolver_text >"$folder/etc/resolv.conf"
    echo "$1" >"$folder/etc/hostname"
    printf '%s\n' 'passwd: files' 'group: files' 'shadow: files' \
        'hosts: files dns' 'services: files' >"$folder/etc/nsswitch.conf"
    # ssh and sshd take the home folder from here, not from HOME.
    awk -F: -v OFS=: -v user="$user" -v home="$folder/home" \
        '$1 == user { $6 = home } { print }' /etc/passwd >"$folder/etc/passwd"
    echo "$user:*:19000:0:99999:7:::" >"$folder/etc/shadow"
    [ "$user" = sshd ] || echo 'sshd:!:19000::::::' >>"$folder/etc/shadow"
    chmod 755 "$folder/etc"
    chmod 644 "$folder"/etc/{hosts,resolv.conf,hostname,nsswitch.conf,passwd}
    chmod 444 "$folder"/etc/{boot_id,machine-id}
}

# new_boot NODE: another boot ID, in the same file: it may be shown already.
new_boot()
{
    cat /proc/sys/kernel/random/uuid >"$lab/nodes/$1/etc/boot_id"
}

start_nodes()
{
    local name

    for name in switch "${names[@]}"; do
        node_files "$name"
        setsid unshare --net --uts --mount --ipc -- "$parts/node" \
            "$lab" "$name" >"$lab/nodes/$name/log" 2>&1 </dev/null &
        disown
    done
    for name in switch "${names[@]}"; do
        until_true 30 node_has_begun "$name" || die "node $name did not" \
            "start: $(tail -n 3 "$lab/nodes/$name/log")"
    done
}

node_has_begun()
{
    [ -e "$lab/nodes/$1/holder.pid" ] || [ -s "$lab/nodes/$1/log" ]
}

build_network()
{
    local index=0 name

    build_switch
    for name in "${names[@]}"; do
        plug_in "$name" "$index"
        [ "$decoy" = no ] || add_decoy "$name"
        index=$((index + 1))
    done
}

# lab_down CHOSEN LAB...: those, or the chosen one, or the only one.
lab_down()
{
    local chosen=$1 ids=() id
    shift

    need_root
    if [ "${1:-}" = --all ]; then
        mapfile -t ids < <(lab_ids)
        shift
    elif [ $# -eq 0 ]; then
        [ -n "$chosen" ] && set -- "$chosen"
        [ $# -gt 0 ] || mapfile -t ids < <(lab_ids)
        [ $# -gt 0 ] || [ "${#ids[@]}" -eq 1 ] ||
            die "which lab? there are ${#ids[@]}: ${ids[*]}"
    fi
    for id in "$@" ${ids[@]+"${ids[@]}"}; do
        name_lab "$id"
        [ -d "$lab" ] || [ -n "$(pids_in)" ] || die "there is no lab at $lab"
        end_lab
    done
}

# end_lab: every process in it, and then, as nothing is left that holds a
# namespace, the folder. Whoever starts processes meanwhile is ended as well.
end_lab()
{
    pids_in | grep -qx "$$" && die "this runs in the lab that is to end"
    until_true 20 all_killed ||
        die "lab $lab_id: these processes do not end: $(pids_in | xargs)"
    rm -rf "$lab"
}

all_killed()
{
    local pids pid

    pids=$(pids_in)
    for pid in $pids; do
        kill -KILL "$pid" 2>/dev/null || true
    done
    [ -z "$pids" ]
}
