# SPDX-License-Identifier: Apache-2.0
#
# What all commands of scripts/lab need: which lab, which node, which
# processes, and how to get into a namespace. Sourced by scripts/lab.
# shellcheck shell=bash disable=SC2034,SC2154  # the parts share variables

# Where namespaces cannot be had a test is skipped, not failed.
EXIT_CANNOT=77
EXIT_MISUSE=2

labs_folder=$(realpath -m "${TMPDIR:-/tmp}")
lab=     # the chosen lab's folder
lab_id=  # and its ID

misuse()
{
    say "$*"
    exit "$EXIT_MISUSE"
}

cannot()
{
    say "cannot make a lab here: $*"
    exit "$EXIT_CANNOT"
}

need_root()
{
    [ "$(id -u)" -eq 0 ] || cannot "needs root (sudo), or for all but sshd and" \
        "Slurm a shell of: unshare --user --map-root-user --mount"
}

# need_value OPTION COUNT: dies unless more words follow the option.
need_value()
{
    [ "$2" -ge 2 ] || misuse "$1 needs a value"
}

folder_of()
{
    echo "$labs_folder/gpulaunch-lab.$1"
}

lab_ids()
{
    local folder

    for folder in "$labs_folder"/gpulaunch-lab.*/; do
        [ ! -e "$folder" ] || basename "$folder" | sed 's/^gpulaunch-lab\.//'
    done
}

# name_lab LAB: sets lab and lab_id from a folder or an ID, there or not.
name_lab()
{
    case $1 in
    */*) lab=$(realpath -m "$1") ;;
    *) lab=$(folder_of "$1") ;;
    esac
    lab_id=${lab##*/gpulaunch-lab.}
    [[ $lab_id =~ ^[A-Za-z0-9_-]+$ ]] ||
        misuse "'$1' is not a lab: give its folder or its ID"
}

# choose_lab LAB|"": the lab that the command is for. It must be there.
choose_lab()
{
    local ids

    if [ -n "$1" ]; then
        name_lab "$1"
        [ -e "$lab/settings" ] || die "there is no lab at $lab"
    else
        mapfile -t ids < <(lab_ids)
        case ${#ids[@]} in
        0) die "there is no lab below $labs_folder; make one: scripts/lab up" ;;
        1) name_lab "${ids[0]}" ;;
        *) die "several labs: ${ids[*]}; choose one by --lab or \$LAB" ;;
        esac
        [ -e "$lab/settings" ] || die "the lab at $lab is not whole;" \
            "end it: scripts/lab down $lab_id"
    fi
    read_settings
}

# The settings of `up`, as it wrote them.
read_settings()
{
    local name value

    while IFS='=' read -r name value; do
        case $name in
        networks) networks=$value ;;
        family) family=$value ;;
        dns) dns=$value ;;
        decoy) decoy=$value ;;
        max_startups) max_startups=$value ;;
        esac
    done <"$lab/settings"
}

# all_nodes: front first.
all_nodes()
{
    cut -d' ' -f1 "$lab/nodes.list"
}

need_node()
{
    all_nodes | grep -qxF -- "$1" || die "there is no node '$1' in lab" \
        "$lab_id; there are: $(all_nodes | tr '\n' ' ')"
}

# choose_nodes NODE...: sets chosen_nodes to those, checked, or to all.
choose_nodes()
{
    local node

    chosen_nodes=("$@")
    [ $# -gt 0 ] || mapfile -t chosen_nodes < <(all_nodes)
    for node in "$@"; do
        need_node "$node"
    done
}

# mark [NODE]: what the mount table of each process there has.
mark()
{
    echo " - tmpfs $lab/nodes/${1:+$1 }"
}

# pids_in [NODE]: of every process in the lab, or on one of its nodes, zombies
# left out: they have no mount table any more.
pids_in()
{
    { grep -lF "$(mark "$@")" /proc/[0-9]*/mountinfo 2>/dev/null ||
        true; } | cut -d/ -f3
}

# holder_of NODE: the pid that keeps the node's namespaces, if it lives.
holder_of()
{
    local pid

    pid=$(cat "$lab/nodes/$1/holder.pid" 2>/dev/null) || pid=
    grep -qF "$(mark "$1")" "/proc/${pid:-0}/mountinfo" 2>/dev/null || die "node '$1' is gone: the" \
        "process that held it has ended; end the lab: scripts/lab down $lab_id"
    echo "$pid"
}

# within_node NODE COMMAND...: with its namespaces, and the environment of the
# caller. For the lab's own commands.
within_node()
(
    local pid

    pid=$(holder_of "$1")
    shift
    umask "$caller_umask"
    exec nsenter --target "$pid" --net --uts --mount --ipc --wdns=/ -- "$@"
)

# until_true SECONDS COMMAND...: false when it did not come true in time.
until_true()
{
    local deadline=$((SECONDS + $1))
    shift

    until "$@"; do
        [ "$SECONDS" -lt "$deadline" ] || return 1
        sleep 0.02
    done
}

# Has this process ended? A zombie has no mount table any more.
is_gone()
{
    ! grep -q . "/proc/$1/mountinfo" 2>/dev/null
}

# end_pid PIDFILE: the process whose pid is in that file, if it is the lab's.
end_pid()
{
    local pid

    pid=$(cat "$1" 2>/dev/null) || return 0
    rm -f "$1"
    grep -qF "$(mark)" "/proc/$pid/mountinfo" 2>/dev/null || return 0
    kill -TERM "$pid" 2>/dev/null || true
    until_true 5 is_gone "$pid" || kill -KILL "$pid" 2>/dev/null || true
    until_true 5 is_gone "$pid" || die "process $pid ($1) does not end"
}

# lab_exec NODE COMMAND...: becomes that command, on that node, so that signals
# for the one reach the other; with the node's home and folder for temporary
# files, and none of the caller's own folders.
lab_exec()
{
    local node=${1:-} pid home

    [ $# -ge 1 ] || misuse "exec needs a node and a command"
    need_node "$node"
    shift
    [ "${1:-}" != -- ] || shift
    [ $# -ge 1 ] || misuse "exec $node: which command?"
    pid=$(holder_of "$node")
    home=$lab/nodes/$node/home
    umask "$caller_umask"
    unset XDG_STATE_HOME XDG_CONFIG_HOME XDG_CACHE_HOME XDG_DATA_HOME LAB
    export HOME=$home TMPDIR=$lab/nodes/$node/tmp HOSTNAME=$node
    export XDG_RUNTIME_DIR=$lab/nodes/$node/run
    exec nsenter --target "$pid" --net --uts --mount --ipc --wdns="$PWD" -- \
        "$@"
}
