# SPDX-License-Identifier: Apache-2.0
#
# Slurm in the lab, with munge and configuration of its own: a slurmd on each
# node, or several on the front, which then share its name and address.
# Sourced by scripts/lab.
# shellcheck shell=bash disable=SC2034,SC2154  # the parts share variables

lab_slurm()
{
    local action=${1:-} on_front=0

    [ $# -eq 0 ] || shift
    while [ $# -gt 0 ]; do
        case $1 in
        --one-host)
            need_value "$1" $#
            on_front=$2
            shift
            ;;
        --one-host=*) on_front=${1#*=} ;;
        *) misuse "slurm: no option '$1'; try scripts/lab --help" ;;
        esac
        shift
    done
    [[ $on_front =~ ^[0-9]{1,2}$ ]] ||
        misuse "--one-host: '$on_front' is not a number up to 99"
    case $action in
    up) slurm_up "$on_front" ;;
    down) slurm_down ;;
    *) misuse "slurm: up or down?" ;;
    esac
}

# slurmds ON_FRONT: a line each: its name, the lab's node, the port.
slurmds()
{
    local i

    if [ "$1" -gt 0 ]; then
        for ((i = 1; i <= $1; i++)); do
            echo "n$i front $((17000 + i))"
        done
    else
        all_nodes | awk '$1 != "front" { print $1, $1, 6818 }'
    fi
}

slurm_up()
{
    local tool node

    for tool in munged slurmctld slurmd sinfo; do
        command -v "$tool" >/dev/null ||
            cannot "$tool is missing: apt-get install slurm-wlm munge"
    done
    [ -d /etc/slurm ] || cannot "/etc/slurm is missing"
    [ "$(cat /proc/self/setgroups)" = allow ] ||
        cannot "Slurm may not change groups in a user namespace of this kind"
    [ ! -e "$lab/slurm" ] || die "Slurm is up already; scripts/lab slurm down"
    mkdir -p "$lab/slurm"/{etc,state,log}
    trap 'slurm_down' EXIT
    slurmds "$1" >"$lab/slurm/slurmds"
    slurm_settings >"$lab/slurm/etc/slurm.conf"
    # GPUs to ask for; there is nothing behind them.
    echo 'Name=gpu File=/dev/null,/dev/zero' >"$lab/slurm/etc/gres.conf"
    (umask 077 && head -c 128 /dev/urandom >"$lab/slurm/munge.key")
    for node in front $(cut -d' ' -f2 "$lab/slurm/slurmds" | grep -vx front); do
        start_munge "$node"
    done
    start_slurm
    trap - EXIT
}

slurm_settings()
{
    local slurmd node port

    cat <<TEXT
ClusterName=lab
SlurmctldHost=front($(addresses 1 0 | head -n 1))
AuthType=auth/munge
CryptoType=crypto/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$lab/slurm/state
SlurmdSpoolDir=$lab/slurm/spool.%n
SlurmctldPidFile=$lab/slurm/slurmctld.pid
SlurmdPidFile=$lab/slurm/slurmd-%n.pid
SlurmctldLogFile=$lab/slurm/log/slurmctld
SlurmdLogFile=$lab/slurm/log/slurmd-%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
ReturnToService=2
# The processors that a node is said to have need not be there.
SlurmdParameters=config_overrides
KillWait=5
GresTypes=gpu
SchedulerParameters=batch_sched_delay=0
TEXT
    [ "$family" = 4 ] || echo "CommunicationParameters=EnableIPv6"
    while read -r slurmd node port; do
        echo "NodeName=$slurmd NodeHostname=$node" \
            "NodeAddr=$(addresses 1 "$(index_of "$node")" | head -n 1)" \
            "Port=$port CPUs=2 Gres=gpu:2 State=UNKNOWN"
    done <"$lab/slurm/slurmds"
    echo "PartitionName=lab Nodes=ALL Default=YES MaxTime=INFINITE State=UP" \
        "OverSubscribe=FORCE"
}

# Munge listens in the node's own /run; the node's /etc/slurm becomes the lab's.
start_munge()
{
    local files=$lab/slurm/munged-$1

    within_node "$1" mkdir -p /run/munge
    within_node "$1" munged --key-file="$lab/slurm/munge.key" \
        --socket=/run/munge/munge.socket.2 --pid-file="$files.pid" \
        --log-file="$lab/slurm/log/munged-$1" --seed-file="$files.seed" \
        </dev/null >"$files.out" 2>&1 ||
        die "munge does not start on $1: $(tail -n 1 "$files.out")"
    within_node "$1" mount --bind "$lab/slurm/etc" /etc/slurm
}

start_slurm()
{
    local slurmd node

    within_node front env -u SLURM_CONF slurmctld </dev/null ||
        die "slurmctld does not start, see $lab/slurm/log"
    while read -r slurmd node _; do
        within_node "$node" env -u SLURM_CONF slurmd -N "$slurmd" </dev/null ||
            die "slurmd does not start on $node, see $lab/slurm/log"
    done <"$lab/slurm/slurmds"
    until_true 30 slurm_is_idle ||
        die "Slurm is not ready after 30 s: $(within_node front sinfo -h -N \
            -o '%N %T %E' 2>&1 | tail -n 3), see $lab/slurm/log"
}

slurm_is_idle()
{
    [ "$(within_node front sinfo -h -N -o '%N %T' 2>/dev/null |
        grep -c ' idle$')" -eq "$(wc -l <"$lab/slurm/slurmds")" ]
}

slurm_down()
{
    local file

    [ -e "$lab/slurm" ] || return 0
    for file in "$lab"/slurm/slurmd-*.pid "$lab/slurm/slurmctld.pid" \
        "$lab"/slurm/munged-*.pid; do
        end_pid "$file"
    done
    until_true 10 steps_killed || die "steps of Slurm do not end:" \
        "$(slurm_pids | xargs)"
    for file in front $(cut -d' ' -f2 "$lab/slurm/slurmds"); do
        within_node "$file" umount /etc/slurm 2>/dev/null || true
    done
    rm -rf "$lab/slurm"
}

# slurm_pids: its own processes, and those that run in a job.
slurm_pids()
{
    local pid

    for pid in $(pids_in); do
        case $(readlink "/proc/$pid/exe" 2>/dev/null) in
        */slurmstepd* | */slurmd* | */slurmctld*) echo "$pid" ;;
        *) ! grep -qzs '^SLURM_JOB_ID=' "/proc/$pid/environ" || echo "$pid" ;;
        esac
    done
}

steps_killed()
{
    local pids pid

    pids=$(slurm_pids)
    for pid in $pids; do
        kill -KILL "$pid" 2>/dev/null || true
    done
    [ -z "$pids" ]
}
