# SPDX-License-Identifier: Apache-2.0
#
# The lab's networks: addresses, links, and what the names resolve to.
# Sourced by scripts/lab.
#
# Network k is the bridge net<k> in the namespace `switch`. The port of node i
# (front is 0) on it is n<i>-<k> there, and eth0 or the like at the node.
# shellcheck shell=bash disable=SC2034,SC2154  # the parts share variables

# No spanning tree and no snooping: a port is ready at once.
plain_bridge='stp_state 0 mcast_snooping 0 forward_delay 0'

# index_of NODE
index_of()
{
    awk -v node="$1" '$1 == node { print NR - 1 }' "$lab/nodes.list"
}

# address4 NETWORK INDEX, address6 NETWORK INDEX: 10.10.1.3 and fd00:10::1:3
# for node 3 on network 1; 10.10.0.1 and fd00:10::1 for front.
address4()
{
    if [ "$2" -eq 0 ]; then
        echo "10.$((10 * $1)).0.1"
    else
        echo "10.$((10 * $1)).$(($2 / 250 + 1)).$(($2 % 250))"
    fi
}

address6()
{
    if [ "$2" -eq 0 ]; then
        echo "fd00:$((10 * $1))::1"
    else
        echo "fd00:$((10 * $1))::1:$2"
    fi
}

# addresses NETWORK INDEX: one a line, those that the lab's nodes have.
addresses()
{
    [ "$family" = 6 ] || address4 "$@"
    [ "$family" = 4 ] || address6 "$@"
}

# interface_of NODE NETWORK
interface_of()
{
    awk -v node="$1" -v column=$(($2 + 1)) '$1 == node { print $column }' \
        "$lab/nodes.list"
}

# next_interface NAME: ens5 becomes ens6; a name without a number gets a 1.
next_interface()
{
    local number=${1##*[!0-9]}

    echo "${1%"$number"}$((${number:-0} + 1))"
}

# hosts_text: what /etc/hosts is on every node.
hosts_text()
{
    local node index=0 network address

    printf '127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n'
    [ "$dns" = yes ] || return 0
    while read -r node _; do
        for ((network = 1; network <= networks; network++)); do
            for address in $(addresses "$network" "$index"); do
                echo "$address $node$([ "$network" -eq 1 ] || echo "-net2")"
            done
        done
        index=$((index + 1))
    done <"$lab/nodes.list"
}

# resolver_text: nobody listens there, so every query fails, and at once.
resolver_text()
{
    if [ "$family" = 6 ]; then
        echo 'nameserver ::1'
    else
        echo 'nameserver 127.0.0.1'
    fi
    echo 'options timeout:1 attempts:1'
}

build_switch()
{
    local network

    {
        for ((network = 1; network <= networks; network++)); do
            echo "link add net$network type bridge $plain_bridge"
            echo "link set net$network up"
        done
    } | within_node switch ip -batch -
}

# plug_in NODE INDEX: its links into the switch, and its addresses.
plug_in()
{
    local node=$1 index=$2 network port interface address pid

    pid=$(holder_of "$node")
    for ((network = 1; network <= networks; network++)); do
        port=n$index-$network
        interface=$(interface_of "$node" "$network")
        printf '%s\n' "link add $port type veth peer name $interface netns $pid" \
            "link set $port master net$network" "link set $port up"
    done | within_node switch ip -batch -
    for ((network = 1; network <= networks; network++)); do
        interface=$(interface_of "$node" "$network")
        for address in $(addresses "$network" "$index"); do
            case $address in
            *:*) echo "address add $address/64 dev $interface nodad" ;;
            *) echo "address add $address/16 dev $interface" ;;
            esac
        done
        echo "link set $interface up"
    done | within_node "$node" ip -batch -
}

# A bridge that leads nowhere, with the same address on every node, and a
# container's link so that it is up: as Docker leaves it.
add_decoy()
{
    local node=$1 address='172.17.0.1/16'

    [ "$family" != 6 ] || address='fd00:17::1/64'
    {
        echo "link add docker0 type bridge $plain_bridge"
        echo "link add veth5a1b2c3 type veth peer name vethpeer"
        echo "link set veth5a1b2c3 master docker0"
        echo "link set veth5a1b2c3 up"
        echo "link set vethpeer up"
        echo "address add $address dev docker0$(
            [ "$family" != 6 ] || echo ' nodad')"
        echo "link set docker0 up"
    } | within_node "$node" ip -batch -
}
