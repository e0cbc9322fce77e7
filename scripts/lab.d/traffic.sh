# SPDX-License-Identifier: Apache-2.0
#
# Faults that slow packets down: a rate by the kernel's token bucket, and a
# delay by a relay in the switch. Sourced by scripts/lab.
# shellcheck shell=bash disable=SC2034,SC2154  # the parts share variables

# networks_of: those that the command is for, one a line.
networks_of()
{
    if [ "$on_network" = '*' ]; then
        seq "$networks"
    else
        echo "$on_network"
    fi
}

lab_rate()
{
    local bits node network

    parse_way "$@"
    [ "$one_way" = no ] || misuse "rate: is for both ways"
    [ "${#words[@]}" -ge 2 ] || misuse "rate: give a rate and nodes"
    bits=$(bits_of "${words[0]}")
    [ -n "$bits" ] ||
        misuse "rate: '${words[0]}' is not like 500kbit, 10mbit or 1gbit"
    choose_nodes "${words[@]:1}"
    lock_faults
    for node in "${chosen_nodes[@]}"; do
        for network in $(networks_of); do
            add_fault rate "$node" - "$network" "$bits"
            on_both_ends "$node" "$network" replace root "$bits"
        done
    done
}

bits_of()
{
    [[ $1 =~ ^([1-9][0-9]{0,5})(k|m|g)bit$ ]] || return 0
    case ${BASH_REMATCH[2]} in
    k) echo "${BASH_REMATCH[1]}000" ;;
    m) echo "${BASH_REMATCH[1]}000000" ;;
    g) echo "${BASH_REMATCH[1]}000000000" ;;
    esac
}

# on_both_ends NODE NETWORK replace|del root [BITS]: what leaves the node, and
# what the switch sends to it. The bucket holds 20 ms, and some packets.
on_both_ends()
{
    local index burst bucket=()

    index=$(index_of "$1")
    if [ $# -eq 5 ]; then
        burst=$(($5 / 8 / 50))
        [ "$burst" -ge 15000 ] || burst=15000
        bucket=(tbf rate "${5}bit" burst "$burst" latency 100ms)
    fi
    within_node switch tc qdisc "$3" dev "n$index-$2" "$4" \
        ${bucket[@]+"${bucket[@]}"}
    within_node "$1" tc qdisc "$3" dev "$(interface_of "$1" "$2")" "$4" \
        ${bucket[@]+"${bucket[@]}"}
}

end_rate()
{
    on_both_ends "$1" "$2" del root
}

lab_delay()
{
    local arguments=() seed=1 reorder=no least most node network

    while [ $# -gt 0 ]; do
        case $1 in
        --seed)
            need_value "$1" $#
            seed=$2
            shift
            ;;
        --seed=*) seed=${1#*=} ;;
        --reorder) reorder=yes ;;
        *) arguments+=("$1") ;;
        esac
        shift
    done
    parse_way ${arguments[@]+"${arguments[@]}"}
    [ "$one_way" = no ] || misuse "delay: is for both ways"
    [ "${#words[@]}" -ge 2 ] || misuse "delay: give a delay and nodes"
    [[ ${words[0]} =~ ^([0-9]{1,5})(ms)?(-([0-9]{1,5})(ms)?)?$ ]] ||
        misuse "delay: '${words[0]}' is not like 20ms or 5ms-50ms"
    least=${BASH_REMATCH[1]}
    most=${BASH_REMATCH[4]:-$least}
    [ "$least" -le "$most" ] || misuse "delay: $least ms is more than $most ms"
    [[ $seed =~ ^[0-9]{1,9}$ ]] || misuse "--seed: '$seed' is not a number"
    choose_nodes "${words[@]:1}"
    [[ -r /dev/net/tun && -w /dev/net/tun ]] ||
        cannot "the relay of delays needs /dev/net/tun"
    lock_faults
    for node in "${chosen_nodes[@]}"; do
        for network in $(networks_of); do
            end_delay "$node" "$network"
            add_fault delay "$node" - "$network" "$least:$most:$seed:$reorder"
            start_relay "$node" "$network" "$least" "$most" "$seed" "$reorder"
        done
    done
}

# start_relay NODE NETWORK LEAST MOST SEED REORDER: the node's port leaves the
# network's bridge for one that it has with one end of the relay; the other
# end takes its place.
start_relay()
{
    local index file
    index=$(index_of "$1")-$2
    file=$lab/nodes/$1/relay-$2

    rm -f "$file.pid"
    within_node switch setsid --fork /usr/bin/python3 "$parts/relay.py" \
        "t$index" "d$index" "$3" "$4" "$5" "$6" "$file.pid" \
        </dev/null >"$file.log" 2>&1 9>&-
    until_true 20 test -s "$file.pid" || die "the relay of $1 does not start:" \
        "$(tail -n 1 "$file.log")"
    printf '%s\n' \
        "link add b$index type bridge $plain_bridge" "link set b$index up" "link set t$index master b$index" \
        "link set t$index up" "link set d$index master net$2" \
        "link set d$index up" "link set n$index master b$index" |
        within_node switch ip -batch - 9>&-
}

# end_delay NODE NETWORK: nothing where there is none.
end_delay()
{
    local index
    index=$(index_of "$1")-$2

    [ -e "$lab/nodes/$1/relay-$2.pid" ] || return 0
    end_pid "$lab/nodes/$1/relay-$2.pid"
    printf '%s\n' "link set n$index master net$2" "link del b$index" |
        within_node switch ip -batch - 9>&-
}
