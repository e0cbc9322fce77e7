#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Jobs of a real Slurm, in the network lab: gpulaunch takes the allocation and
# starts one step on it, or is started by one on each node.
. "$(dirname "$0")/../lib/lab.sh"

make_lab --nodes 4 --id slurm
code=0
lab slurm up 2>"$err" || code=$?
[ "$code" -ne 77 ] || skip "$(cat "$err")"
[ "$code" -eq 0 ] || fail "no Slurm: $(cat "$err")"

# The file of the secret, in the home of the front, which the nodes see.
no_file_left()
{
    local left

    left=$(find "$scratch" -path '*/gpulaunch/jobs/*')
    [ -z "$left" ] || fail "the secret is left: $left"
}

# So many sleeps of this length are on the nodes.
sleeps()
{
    [ "$(lab ps | grep -cE "^node[0-9]+ [0-9]+ sleep $1\$")" = "$2" ]
}

it "salloc: exactly the allocation, in its order, which is told"
run "${on_front[@]}" salloc -Q -N3 "$bin/gpulaunch" --self-test off -- \
    sh -c 'echo "$RANK of $WORLD_SIZE on $(hostname)"'
expect_status 0
[ "$(sort "$out")" = $'[0] 0 of 3 on node01\n[1] 1 of 3 on node02\n[2] 2 of 3 on node03' ] ||
    fail "not the three nodes"
expect_has "$err" '3 nodes of SLURM_JOB_NODELIST, in the order of Slurm: node\[01-03\]'
expect_idle_nodes 20
no_file_left

it "the self-test and the example run; fewer nodes than there are may be asked"
run "${on_front[@]}" salloc -Q -N4 "$bin/gpulaunch" --nodes 2 -- "$python" \
    "$project/docs/examples/train.py" --workers 2
expect_status 0
expect_has "$err" 'self-test passed'
expect_has "$out" '^\[1\] worker 1 of 2: loss 0\.154961'
expect_idle_nodes 20

it "no variable of Slurm's tells a rank another place than its own"
run "${on_front[@]}" salloc -Q -N2 --ntasks-per-node=2 "$bin/gpulaunch" \
    --self-test off -- sh -c 'env | sed "s/^/$RANK /"'
expect_status 0
expect_has "$out" '^\[3\] 3 RANK=3$'
expect_has "$out" '^\[3\] 3 SLURM_JOB_ID=[0-9]+$'
expect_has "$out" '^\[3\] 3 SLURM_JOB_NODELIST=node\[01-02\]$'
for name in PROCID LOCALID NTASKS NODEID GTIDS NPROCS STEP_NUM_TASKS \
    TASKS_PER_NODE STEP_TASKS_PER_NODE NTASKS_PER_NODE TASK_PID; do
    expect_lacks "$out" "^\\[[0-3]\\] [0-3] SLURM_$name="
done

it "one failing rank ends the step within its grace, without kill-on-bad-exit"
run "${on_front[@]}" salloc -Q -N3 "$bin/gpulaunch" --self-test off --grace 2s \
    -- sh -c 'trap "" TERM; [ "$RANK" != 1 ] || exit 7; while :; do sleep 1; done'
expect_status 7
expect_last_line 'rank 1 on node node02 .* exited with code 7'
expect_within_ms 15000
expect_idle_nodes 20
no_file_left

it "sbatch: the script's exit code is the job's, and its output the job's"
cat >"$scratch/script" <<SCRIPT
#!/bin/sh
exec "$bin/gpulaunch" --self-test off -- sh -c 'echo "rank \$RANK"; exit 5'
SCRIPT
run "${on_front[@]}" sbatch -Q --wait -N3 -o "$scratch/batch.out" \
    "$scratch/script"
expect_status 5
expect_has "$scratch/batch.out" 'rank [0-2]$'
expect_has "$scratch/batch.out" 'exited with code 5'
expect_idle_nodes 20

it "sbatch's options for tasks, and srun's for files, change nothing of the nodes"
cat >"$scratch/script" <<SCRIPT
#!/bin/sh
#SBATCH --ntasks-per-node=2 --cpus-per-task=1 --gpus-per-task=1
export SRUN_CPUS_PER_TASK=1 SLURM_CPU_BIND=map_cpu:7 SLURM_NTASKS_PER_GPU=1
export SLURM_GPU_BIND=single:1 SLURM_EXACT=1 SLURM_DISTRIBUTION=arbitrary
export SLURM_HOSTFILE=/nonexistent SLURM_IMMEDIATE=1 SLURM_WORKING_DIR=/
export SLURM_STDINMODE=/nonexistent SLURM_LABELIO=1 SLURM_EXPORT_ENV=NONE
export SLURM_STDOUTMODE="$scratch/step.out" SLURM_STDERRMODE="$scratch/step.err"
export MINE='kept, all of it'
cd "$scratch"
exec "$bin/gpulaunch" --self-test off -- sh -c 'echo "\$RANK of \$WORLD_SIZE" \
    "on \$(hostname), \$CUDA_VISIBLE_DEVICES of \$SLURM_GPUS_ON_NODE," \
    "\$SLURM_GPUS_PER_TASK a task, \$MINE, \$PWD"'
SCRIPT
run "${on_front[@]}" sbatch -Q --wait -N3 -o "$scratch/batch.out" \
    "$scratch/script"
expect_status 0
for rank in 0 1 2 3 4 5; do
    expect_has "$scratch/batch.out" \
        "^\\[$rank\\] $rank of 6 on node0$((rank / 2 + 1)), [0-1,]+ of 2, 1 a task, kept, all of it, $scratch\$"
done
left=$(find "$scratch" -maxdepth 1 -name 'step.*')
[ -z "$left" ] || fail "srun wrote where the user's other steps do: $left"
expect_idle_nodes 20

it "scancel leaves nothing"
cat >"$scratch/script" <<SCRIPT
#!/bin/sh
exec "$bin/gpulaunch" --self-test off --grace 2s -- sleep 317
SCRIPT
run "${on_front[@]}" sbatch --parsable -N3 -o "$scratch/batch.out" \
    "$scratch/script"
job=$(cat "$out")
within 30 "no ranks" sleeps 317 3
on front scancel "$job"
expect_idle_nodes 45

it "Ctrl-C in an allocation ends the step and leaves nothing"
run_behind "${on_front[@]}" salloc -Q -N2 "$bin/gpulaunch" --self-test off \
    --grace 2s -- sleep 318
within 30 "no ranks" sleeps 318 2
front_pid=$(pgrep -f "^$bin/gpulaunch --self-test off --grace 2s -- sleep 318")
kill -INT "$front_pid"
finish
expect_status 130
expect_idle_nodes 30

it "a secret that the nodes do not see is an error that says so"
on front mount -t tmpfs -o mode=700 only-here /mnt
on front "$bin/gpulaunch" secret /mnt/secret
run "${on_front[@]}" salloc -Q -N2 "$bin/gpulaunch" --self-test off \
    --join-timeout 10s --secret-file /mnt/secret -- true
expect_status 40
expect_last_line 'node node01 did not join: srun, which starts all nodes, ended .*/mnt/secret: No such file or directory; --secret-file FILE must be on a file system that all nodes of the job share'
expect_idle_nodes 20

# gpulaunch as the task of srun on each of so many nodes.
by_srun=("${on_front[@]}" srun --ntasks-per-node=1)

it "started by srun on each node: one job of them, in the order of the step"
run "${by_srun[@]}" -N3 "$bin/gpulaunch" --per-node 2 --self-test off -- \
    sh -c 'echo "$RANK of $WORLD_SIZE on $(hostname) ${SLURM_PROCID-none}"'
expect_status 0
[ "$(sort "$out")" = "$(for rank in 0 1 2 3 4 5; do
    echo "[$rank] $rank of 6 on node0$((rank / 2 + 1)) none"
done)" ] || fail "not two ranks on each of three nodes"
expect_has "$err" '3 nodes of SLURM_STEP_NODELIST, in the order of Slurm: node\[01-03\]'
expect_idle_nodes 20
no_file_left

it "by srun: an address of IPv6"
run "${by_srun[@]}" -N1 "$bin/gpulaunch" --address ::1 --self-test off -- \
    sh -c 'echo "$RANK"'
expect_status 0
expect_out '0'
no_file_left

it "by srun: the self-test and the example run"
run "${by_srun[@]}" -N2 "$bin/gpulaunch" -- "$python" \
    "$project/docs/examples/train.py" --workers 2
expect_status 0
expect_has "$err" 'self-test passed'
expect_has "$out" '^\[1\] worker 1 of 2: loss 0\.154961'
expect_idle_nodes 20

# With srun's own rule, and with the one that ends all tasks when one fails.
for rule in 0 1; do
    it "by srun, --kill-on-bad-exit=$rule: the code is the first failure's"
    run "${by_srun[@]}" --kill-on-bad-exit="$rule" -N3 "$bin/gpulaunch" \
        --self-test off --grace 2s -- \
        sh -c 'trap "" TERM; [ "$RANK" != 1 ] || exit 7; while :; do sleep 1; done'
    expect_status 7
    expect_has "$err" 'rank 1 on node node02 .* exited with code 7'
    expect_within_ms 15000
    expect_idle_nodes 20
    no_file_left
done

it "by srun: scancel leaves nothing"
run_behind "${by_srun[@]}" -N3 "$bin/gpulaunch" --self-test off --grace 2s -- \
    sleep 319
within 30 "no ranks" sleeps 319 3
on front scancel "$(on front squeue -h -o %A)"
finish
expect_idle_nodes 45
no_file_left

it "by srun: what an earlier run of the step has left is not taken"
cat >"$scratch/step" <<STEP
#!/bin/sh
# Task 0 begins when all others look already.
if [ "\$SLURM_PROCID" = 0 ]; then
    until [ -e "$scratch/mark.1" ] && [ -e "$scratch/mark.2" ]; do
        sleep 0.1
    done
else
    : >"$scratch/mark.\$SLURM_PROCID"
fi
exec "$bin/gpulaunch" --self-test off -- sh -c 'echo "rank \$RANK"'
STEP
cat >"$scratch/script" <<SCRIPT
#!/bin/sh
umask 077
mkdir -p "$scratch/shared/gpulaunch/jobs"
export XDG_STATE_HOME="$scratch/shared"
printf 'gpulaunch-meeting 1\nrun old\njob old\naddress 127.0.0.1:1\nend\n' \
    >"$scratch/shared/gpulaunch/jobs/slurm-\$SLURM_JOB_ID.0"
exec srun --ntasks-per-node=1 "$scratch/step"
SCRIPT
chmod +x "$scratch/step" "$scratch/script"
run "${on_front[@]}" salloc -Q -N3 "$scratch/script"
expect_status 0
[ "$(sort "$out")" = $'[0] rank 0\n[1] rank 1\n[2] rank 2' ] ||
    fail "not three ranks"
expect_idle_nodes 20
no_file_left

it "by srun, and no directory that the nodes share: who waits for whom, and why"
run "${by_srun[@]}" -N2 sh -c "XDG_STATE_HOME=$scratch/\$SLURMD_NODENAME \
    exec '$bin/gpulaunch' --self-test off --join-timeout 5s -- true"
expect_status 40
expect_has "$err" 'node02: task 0, on node01 .* has not told this node within 5 s where the job is: there is no slurm-[0-9]*\.0 in .*/node02/gpulaunch/jobs; .*: set XDG_STATE_HOME to a directory that is'
expect_has "$err" "1 of 2 nodes joined within 5 s; missing: node02"
expect_idle_nodes 20
no_file_left

it "by srun, several times on a node: refused at once, with what is right"
run "${on_front[@]}" srun -N2 --ntasks-per-node=2 "$bin/gpulaunch" -- true
expect_status 125
expect_has "$err" 'srun has started gpulaunch 4 times on 2 nodes; once on each is right: srun --ntasks-per-node=1 gpulaunch --per-node K'
expect_idle_nodes 20

it "four nodes on one host are told apart by the step, whoever starts it"
lab slurm down
lab slurm up --one-host 4
run "${on_front[@]}" salloc -Q -N4 "$bin/gpulaunch" --self-test off -- \
    sh -c 'echo "$RANK $SLURM_JOB_NODELIST"'
expect_status 0
[ "$(sort "$out")" = $'[0] 0 n[1-4]\n[1] 1 n[1-4]\n[2] 2 n[1-4]\n[3] 3 n[1-4]' ] ||
    fail "not four nodes"
run "${by_srun[@]}" -N4 "$bin/gpulaunch" --self-test off -- \
    sh -c 'echo "$RANK $SLURM_JOB_NODELIST"'
expect_status 0
[ "$(sort "$out")" = $'[0] 0 n[1-4]\n[1] 1 n[1-4]\n[2] 2 n[1-4]\n[3] 3 n[1-4]' ] ||
    fail "not four nodes by srun"

done_stories
