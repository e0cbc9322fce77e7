# SPDX-License-Identifier: Apache-2.0
#
# What there is, for people and tests. Sourced by scripts/lab.
# shellcheck shell=bash disable=SC2034,SC2154  # the parts share variables

lab_list()
{
    local id

    [ $# -eq 0 ] || misuse "list takes no arguments"
    for id in $(lab_ids); do
        name_lab "$id"
        if [ -e "$lab/settings" ]; then
            echo "$id $lab $(($(wc -l <"$lab/nodes.list") - 1)) nodes and front"
        else
            echo "$id $lab (not whole)"
        fi
    done
}

# own_pids: the lab's own processes: holders, sshd, relays, Slurm's daemons.
own_pids()
{
    local file

    for file in "$lab"/nodes/*/*.pid "$lab"/slurm/*.pid; do
        [ ! -s "$file" ] || cat "$file"
    done
    # slurmctld has a child for its scripts.
    file=$lab/slurm/slurmctld.pid
    [ ! -s "$file" ] || ps -o pid= --ppid "$(cat "$file")" | tr -d ' '
}

# lab_ps NODE...: what runs there that is not the lab's own.
lab_ps()
{
    local node pid words own

    choose_nodes "$@"
    own=$(own_pids)
    for node in "${chosen_nodes[@]}"; do
        for pid in $(pids_in "$node" | grep -vxF "$own" || true); do
            words=$({ tr '\0' ' ' <"/proc/$pid/cmdline"; } 2>/dev/null) ||
                continue
            echo "$node $pid ${words% }"
        done
    done
}

lab_status()
{
    local node index=0 network state

    [ $# -eq 0 ] || misuse "status takes no arguments"
    echo "lab $lab_id: $lab"
    [ "$dns" = yes ] || echo "names do not resolve"
    while read -r node _; do
        state=
        [ ! -s "$lab/nodes/$node/sshd.pid" ] || state=" sshd"
        for ((network = 1; network <= networks; network++)); do
            echo "$node $(interface_of "$node" "$network")" \
                "$(addresses "$network" "$index" | tr '\n' ' ' |
                    sed 's/ $//')$state"
        done
        index=$((index + 1))
    done <"$lab/nodes.list"
    show_faults
}

# A line for each fault, with what it has dropped so far.
show_faults()
{
    local kind from to network value way

    while read -r kind from to network value <&8; do
        way="from $from to $to"
        case $kind in
        cut) echo "cut $way$(on_which "$network")$(dropped "$kind $from $to $network $value")" ;;
        loss)
            echo "loss of $(awk -v n="$value" 'BEGIN { print n / 100 }')%" \
                "$way$(on_which "$network")$(dropped "$kind $from $to $network $value")"
            ;;
        off) echo "$from is off$(dropped "$kind $from $to $network $value")" ;;
        block)
            echo "ports $network of $from: $value new connections$(
                dropped "$kind $from $to $network $value" "$from")"
            ;;
        rate) echo "rate of $from$(on_which "$network"): $value bits a second" ;;
        delay)
            IFS=: read -r least most seed reorder <<<"$value"
            echo "delay of $from$(on_which "$network"): $least-$most ms," \
                "seed $seed,$([ "$reorder" = yes ] || echo " not") reordered"
            ;;
        esac
    done 8<"$lab/faults"
}

on_which()
{
    [ "$1" = '*' ] || echo " on network $1"
}

# dropped COMMENT [NODE]: packets that the rules of this comment have counted.
dropped()
{
    local table=bridge

    [ $# -eq 1 ] || table=inet
    within_node "${2:-switch}" nft list table "$table" lab |
        awk -v comment="comment \"$1\"" 'index($0, comment) {
            for (i = 1; i < NF; i++) {
                if ($i == "packets") {
                    sum += $(i + 1)
                }
            }
        } END { printf ": %d packets so far", sum }'
}
