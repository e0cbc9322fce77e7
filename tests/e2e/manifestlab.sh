#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The files of gpulaunch manifest at work: the pods of the Kubernetes one as
# machines of the network lab, the batch script on its real Slurm.
. "$(dirname "$0")/../lib/lab.sh"

"$python" -c 'import yaml' 2>/dev/null || skip "python3-yaml is not there"
make_lab --names train-0,train-1,train-2 --id pods
nodes=$scratch/gpulaunch-lab.pods/nodes
pods=()
as_user=()
"$bin/gpulaunch" secret "$scratch/job.secret"

# A Secret as Kubernetes mounts it: a link, to a file of root that all may
# read, on a mount that is read-only.
mount_secret()
{
    # shellcheck disable=SC2016  # for the node's shell
    on "$1" sh -c 'set -e
        mkdir -p /run/secrets/gpulaunch
        mount -t tmpfs none /run/secrets/gpulaunch
        cd /run/secrets/gpulaunch
        mkdir ..1
        cp "$1" ..1/secret
        chmod 444 ..1/secret
        ln -s ..1 ..data
        ln -s ..data/secret secret
        mount -o remount,ro /run/secrets/gpulaunch' sh "$scratch/job.secret"
}
for i in 0 1 2; do
    mount_secret "train-$i"
done

# manifest ARGUMENT...: makes the file, and `pod` and `probe` of it.
manifest()
{
    "$bin/gpulaunch" manifest kubernetes --name train --image i "$@" \
        >"$scratch/job.yaml"
    "$python" "$project/tests/lib/manifests.py" pod "$scratch/job.yaml" \
        "$scratch"
    mapfile -d '' -t pod <"$scratch/command"
    mapfile -d '' -t probe <"$scratch/probe"
}

# On node INDEX, what its pod would run, without waiting. The words of pod 0
# are in $out and $err; its pid in front_end, the others' in `pods`.
start_pod()
{
    local words=(env "TMPDIR=$scratch" "$project/scripts/lab" exec
        "train-$1" -- env "PATH=$bin:$PATH" "POD_IP=10.10.1.$(($1 + 1))"
        JOB_UID=6a1f0c1e-0000-4000-8000-000000000001
        "JOB_COMPLETION_INDEX=$1" "${as_user[@]}" "${pod[@]}")

    if [ "$1" = 0 ]; then
        run_behind "${words[@]}"
        return
    fi
    env "$mark" "${words[@]}" >"$scratch/pod$1.out" 2>"$scratch/pod$1.err" \
        </dev/null &
    pods[$1]=$!
}

# expect_pod INDEX CODE
expect_pod()
{
    local code=0

    within 30 "pod $1 does not end" is_gone "${pods[$1]}"
    wait "${pods[$1]}" || code=$?
    [ "$code" = "$2" ] ||
        fail "pod $1 ended with $code, not $2: $(cat "$scratch/pod$1.err")"
}

is_ready()
{
    on "train-$1" "${probe[@]}"
}

learn_name()
{
    echo "10.10.1.1 train-0.train" >>"$nodes/train-$1/etc/hosts"
}

it "pods are a job in the order of their index; a name that is late only delays"
manifest --nodes 3 --env 'WORD=a b' -- sh -c \
    "touch '$scratch/ran.'\$RANK; until [ -e '$scratch/go' ]; do sleep 0.05; done
    echo \"\$RANK of \$WORLD_SIZE on \$(hostname), \$WORD, \$1\"" sh '$(NONE) $$'
start_pod 2
start_pod 1
start_pod 0
within 30 "pod 0 does not listen" is_ready 0
! is_ready 1 || fail "a pod that has not joined is ready"
[ -z "$(find "$scratch" -name 'ran.*')" ] || fail "ranks without their nodes"
learn_name 1
learn_name 2
for i in 0 1 2; do
    within 30 "no rank $i" test -e "$scratch/ran.$i"
    is_ready "$i" || fail "pod $i is not ready"
done
touch "$scratch/go"
finish
expect_status 0
expect_pod 1 0
expect_pod 2 0
# shellcheck disable=SC2016  # as the ranks got it
for i in 0 1 2; do
    expect_has "$out" "^\[$i\] $i of 3 on train-$i, a b, \\\$\\(NONE\\) \\\$\\\$\$"
done
expect_has "$err" 'self-test passed'
expect_idle_nodes 10

it "a rank that fails is the exit code of pod 0, for which the Job fails"
manifest --nodes 2 --self-test off -- sh -c 'exit $((RANK * 7))'
start_pod 0
start_pod 1
finish
expect_status 7
expect_pod 1 0
expect_last_line 'rank 1 on node train-1 .* exited with code 7'
expect_idle_nodes 10

it "a pod that is lost is exit code 75, after which a retry makes sense"
rm -f "$scratch"/ran.*
manifest --nodes 2 --self-test off --grace 1s -- sh -c \
    "touch '$scratch/ran.'\$RANK; exec sleep 300"
start_pod 0
start_pod 1
within 30 "no ranks" test -e "$scratch/ran.0" -a -e "$scratch/ran.1"
lab kill train-1
bound_seconds=90 finish
expect_status 75
expect_last_line 'train-1'
lab heal
expect_idle_nodes 10

it "SIGTERM to pod 0, as at an eviction, ends the job on all of them"
mount_secret train-1
learn_name 1
rm -f "$scratch"/ran.*
start_pod 0
start_pod 1
within 30 "no ranks" test -e "$scratch/ran.0" -a -e "$scratch/ran.1"
kill -TERM "$front_end"
finish
expect_status 143
expect_pod 1 0
expect_idle_nodes 10

# As the pods' user, who has no entry in passwd, no capability and no way to
# any, and no more place to write in than they have.
mkdir -m 1777 "$scratch/tmp-of-pods"
chmod 711 "$scratch"
as_user=(env -u XDG_STATE_HOME -u XDG_CONFIG_HOME -u XDG_CACHE_HOME
    -u XDG_RUNTIME_DIR "TMPDIR=$scratch/tmp-of-pods"
    "HOME=$scratch/tmp-of-pods" USER=gpulaunch
    setpriv --reuid 4711 --regid 4711 --clear-groups --no-new-privs
    --bounding-set=-all --inh-caps=-all)
if "${as_user[@]}" "$bin/gpulaunch-worker" --version >"$out" 2>&1; then
    it "the pods' user, who is nobody else, can do all of it"
    rm -f "$scratch"/ran.*
    manifest --nodes 2 --run-as 4711 -- sh -c \
        'echo "$RANK by $(id -u)"; exit $((RANK * 7))'
    start_pod 0
    start_pod 1
    finish
    expect_status 7
    expect_has "$out" '^\[1\] 1 by 4711$'
    expect_has "$err" 'self-test passed'
    expect_last_line 'rank 1 on node train-1 .* its log: .*tmp-of-pods'
    expect_pod 1 0
    expect_idle_nodes 10
else
    echo "the pods' user was not tried: $(tail -n 1 "$out")"
fi
as_user=()

slurm=
code=0
lab slurm up 2>"$err" || code=$?
case $code in
0) slurm=1 ;;
77) echo "the batch script was not tried: $(cat "$err")" ;;
*) fail "no Slurm: $(cat "$err")" ;;
esac

# batch ARGUMENT...: makes the script and submits it, from the front.
batch()
{
    "$bin/gpulaunch" manifest slurm "$@" >"$scratch/job.sh"
    run env "PATH=$bin:$PATH" "TMPDIR=$scratch" "$project/scripts/lab" exec \
        front -- sbatch -Q --wait -o "$scratch/batch.out" "$scratch/job.sh"
}

# Slurm waits two minutes before it starts such a job again.
is_requeued()
{
    on front scontrol show job "$id" >"$scratch/shown" &&
        grep -q 'Restarts=1' "$scratch/shown" &&
        grep -q 'JobState=PENDING' "$scratch/shown"
}

if [ -n "$slurm" ]; then
    it "the batch script runs on its nodes, with the words as they were"
    batch --nodes 3 --self-test off --timeout 5m -- sh -c \
        'printf "%s of %s: <%s>\n" "$RANK" "$WORLD_SIZE" "$1"' sh $'it\'s\t$HOME'
    expect_status 0
    for i in 0 1 2; do
        expect_has "$scratch/batch.out" "$i of 3: <it's	\\\$HOME>\$"
    done
    expect_idle_nodes 20

    it "its exit code is that of the job, which is not tried again"
    batch --nodes 2 --self-test off --retries 2 -- sh -c 'exit $((RANK * 7))'
    expect_status 7
    expect_idle_nodes 20

    it "after 75 Slurm has it again"
    "$bin/gpulaunch" manifest slurm --nodes 2 --self-test off --retries 2 -- \
        sh -c '[ "$RANK" = 0 ] || exit 75; sleep 300' >"$scratch/job.sh"
    id=$(env "PATH=$bin:$PATH" "TMPDIR=$scratch" "$project/scripts/lab" exec \
        front -- sbatch --parsable -o "$scratch/again.out" "$scratch/job.sh")
    within 60 "it is not requeued" is_requeued
    expect_has "$scratch/again.out" 'exited with code 75'
    on front scancel "$id"
    expect_idle_nodes 20
fi

done_stories
