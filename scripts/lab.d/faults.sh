# SPDX-License-Identifier: Apache-2.0
#
# Faults that drop packets or switch a node off. Sourced by scripts/lab.
#
# LAB/faults has a fault a line; the rules are made from it anew at each
# change. KIND FROM TO NETWORK VALUE, where * is any:
#   cut node01 node02 * all      every frame from one to the other
#   cut node01 * 1 ip            IP alone: neighbours still find each other,
#                                so that the way back works
#   loss * * * 250               of 10,000 packets
#   block node01 - 22-80 drop    or refuse: new connections to these ports
#   off node01 - * sshd          or `-`: what heal starts again
#   rate node01 - 1 10000000     bits a second
#   delay node01 - 1 5:50:1:no   milliseconds, seed, may they overtake?
# shellcheck shell=bash disable=SC2034,SC2154  # the parts share variables

# One change at a time. Nothing that stays may inherit the descriptor.
lock_faults()
{
    exec 9>"$lab/lock"
    flock -w 30 9 || die "another command has held $lab/lock for 30 s"
}

# parse_way WORD...: nodes into words, the options into one_way, on_network.
parse_way()
{
    one_way=no
    on_network='*'
    words=()
    while [ $# -gt 0 ]; do
        case $1 in
        --one-way) one_way=yes ;;
        --network)
            need_value "$1" $#
            on_network=$2
            shift
            ;;
        --network=*) on_network=${1#*=} ;;
        -*) misuse "no option '$1' here; try scripts/lab --help" ;;
        *) words+=("$1") ;;
        esac
        shift
    done
    [[ $on_network == '*' || ($on_network =~ ^[12]$ &&
        $on_network -le $networks) ]] ||
        misuse "--network: '$on_network'; this lab has $networks"
}

# add_fault KIND FROM TO NETWORK VALUE: in place of an equal one of that way.
add_fault()
{
    drop_faults "$1" "$2" "$3" "$4"
    echo "$*" >>"$lab/faults"
}

# drop_faults KIND|* FROM TO [NETWORK]: exactly this way.
drop_faults()
{
    awk -v kind="$1" -v from="$2" -v to="$3" -v network="${4-}" '
        !((kind == "*" || $1 == kind) && $2 == from && $3 == to &&
            (network == "" || $4 == network))' "$lab/faults" \
        >"$lab/faults.new"
    mv "$lab/faults.new" "$lab/faults"
}

# add_ways KIND VALUE FROM [TO]: there, and back unless one-way.
add_ways()
{
    add_fault "$1" "$3" "${4:-*}" "$on_network" "$2"
    [ "$one_way" = yes ] ||
        add_fault "$1" "${4:-*}" "$3" "$on_network" "$2"
}

check_pair()
{
    local node

    for node in "$@"; do
        need_node "$node"
    done
    [ $# -lt 2 ] || [ "$1" != "$2" ] || misuse "$1 twice"
}

lab_cut()
{
    parse_way "$@"
    [[ ${#words[@]} -eq 1 || ${#words[@]} -eq 2 ]] ||
        misuse "cut: give one node, or two"
    check_pair "${words[@]}"
    lock_faults
    if [ "$one_way" = yes ]; then
        add_ways cut ip "${words[@]}"
    else
        add_ways cut all "${words[@]}"
    fi
    apply_faults
}

lab_loss()
{
    local of_10000

    parse_way "$@"
    [[ ${#words[@]} -ge 1 && ${#words[@]} -le 3 ]] ||
        misuse "loss: give a percentage, and up to two nodes"
    [[ ${words[0]} =~ ^[0-9]{1,3}(\.[0-9]{1,2})?%?$ ]] ||
        misuse "loss: '${words[0]}' is not a percentage such as 2.5"
    of_10000=$(awk -v p="${words[0]%\%}" 'BEGIN { printf "%.0f", p * 100 }')
    [[ $of_10000 -gt 0 && $of_10000 -le 10000 ]] ||
        misuse "loss: '${words[0]}' is not above 0, or is above 100 percent"
    check_pair "${words[@]:1}"
    lock_faults
    if [ "${#words[@]}" -eq 1 ]; then
        add_fault loss '*' '*' "$on_network" "$of_10000"
    else
        add_ways loss "$of_10000" "${words[@]:1}"
    fi
    apply_faults
}

lab_block()
{
    local how=drop ports given=() node

    for node in "$@"; do
        case $node in
        --reject) how=refuse ;;
        -*) misuse "block: no option '$node'; try scripts/lab --help" ;;
        *) given+=("$node") ;;
        esac
    done
    ports=${given[0]:-}
    [[ $ports =~ ^[0-9]{1,5}(-[0-9]{1,5})?$ && ${ports#*-} -le 65535 &&
        ${ports%-*} -le ${ports#*-} ]] ||
        misuse "block: '$ports' is not a port, nor a range such as 32768-60999"
    choose_nodes "${given[@]:1}"
    lock_faults
    for node in "${chosen_nodes[@]}"; do
        add_fault block "$node" - "$ports" "$how"
        apply_blocks "$node"
    done
}

# Power off: first nothing leaves the node any more, not even the kernel's
# goodbye for its connections; then its processes end.
lab_kill()
{
    local node had pid

    [ $# -ge 1 ] || misuse "kill: which node?"
    choose_nodes "$@"
    lock_faults
    for node in "$@"; do
        had=-
        [ ! -s "$lab/nodes/$node/sshd.pid" ] || had=sshd
        add_fault off "$node" - '*' "$had"
    done
    apply_faults
    for node in "$@"; do
        until_true 20 guests_killed "$node" || die "processes of $node stay"
        rm -f "$lab/nodes/$node/sshd.pid"
    done
}

guests_killed()
{
    local pids pid

    pids=$(pids_in "$1" | grep -vx "$(holder_of "$1")" || true)
    for pid in $pids; do
        kill -KILL "$pid" 2>/dev/null || true
    done
    [ -z "$pids" ]
}

# ports_rule SIDE NODE|all NETWORK: iifname { "n3-1", "d3-1" } and the like.
ports_rule()
{
    local node index network list=

    for node in $([ "$2" = all ] && all_nodes || echo "$2"); do
        index=$(index_of "$node")
        for ((network = 1; network <= networks; network++)); do
            [ "$3" = '*' ] || [ "$3" = "$network" ] || continue
            list+="${list:+, }\"n$index-$network\", \"d$index-$network\""
        done
    done
    echo "$1 { $list }"
}

# way_rule FROM TO NETWORK: which frames. A network is told by its ports.
way_rule()
{
    local from=$1

    [ "$1 $2" != '* *' ] || [ "$3" = '*' ] || from=all
    [ "$from" = '*' ] || ports_rule iifname "$from" "$3"
    [ "$2" = '*' ] || ports_rule oifname "$2" "$3"
}

switch_rules()
{
    local kind from to network value way end nd

    nd='icmpv6 type != { nd-neighbor-solicit, nd-neighbor-advert }'
    printf '%s\n' 'table bridge lab {}' 'delete table bridge lab' \
        'table bridge lab {' 'chain pass {' \
        'type filter hook forward priority 0;'
    # Between a node and its relay: the frame will come by once more.
    printf '%s\n' 'iifname "t*" accept' 'oifname "t*" accept'
    while read -r kind from to network value; do
        end="counter drop comment \"$kind $from $to $network $value\""
        [ "$to" != - ] || to='*'
        way=$(way_rule "$from" "$to" "$network" | tr '\n' ' ')
        case $kind:$value in
        cut:all) echo "$way $end" ;;
        cut:ip)
            echo "$way ether type ip $end"
            echo "$way ether type ip6 meta l4proto != ipv6-icmp $end"
            echo "$way ether type ip6 $nd $end"
            ;;
        loss:10000) echo "$way $end" ;;
        loss:*) echo "$way numgen random mod 10000 < $value $end" ;;
        off:*)
            echo "$way $end"
            echo "$(way_rule '*' "$from" '*') $end"
            ;;
        esac
    done <"$lab/faults"
    printf '}\n}\n'
}

apply_faults()
{
    switch_rules >"$lab/rules.nft"
    within_node switch nft -f "$lab/rules.nft" 9>&-
}

# apply_blocks NODE: its own firewall.
apply_blocks()
{
    local kind from ports value verdict

    {
        printf '%s\n' 'table inet lab {}' 'delete table inet lab' \
            'table inet lab {' 'chain arrive {' \
            'type filter hook input priority 0;'
        while read -r kind from _ ports value; do
            [ "$kind $from" = "block $1" ] || continue
            verdict=drop
            [ "$value" = drop ] || verdict='reject with tcp reset'
            echo "iifname != lo tcp flags & (syn | ack) == syn tcp dport" \
                "$ports counter $verdict comment \"block $1 - $ports $value\""
        done <"$lab/faults"
        printf '}\n}\n'
    } | within_node "$1" nft -f - 9>&-
}

lab_heal()
{
    local kind from to network value

    [ $# -le 2 ] || misuse "heal: one node, two, or none for all"
    check_pair "$@"
    lock_faults
    while read -r kind from to network value <&8; do
        case $# in
        1) [ "$from" = "$1" ] || [ "$to" = "$1" ] || continue ;;
        2)
            [ "$from $to" = "$1 $2" ] || [ "$from $to" = "$2 $1" ] || continue
            ;;
        esac
        drop_faults "$kind" "$from" "$to" "$network"
        heal_one "$kind" "$from" "$network" "$value"
    done 8< <(cat "$lab/faults")
    apply_faults
}

# What is more than a rule of the switch.
heal_one()
{
    case $1 in
    block) apply_blocks "$2" ;;
    rate) end_rate "$2" "$3" ;;
    delay) end_delay "$2" "$3" ;;
    off)
        new_boot "$2"
        [ "$4" != sshd ] || start_sshds "$2" 9>&-
        ;;
    esac
}
