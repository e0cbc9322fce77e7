#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Real Slurm in the network lab: a slurmd on each node, and four on one host;
# and that it goes with everything that it has started.
. "$(dirname "$0")/../lib/lab.sh"

make_lab --nodes 4
code=0
lab slurm up 2>"$err" || code=$?
[ "$code" -ne 77 ] || skip "$(cat "$err")"

expect_sorted()
{
    [ "$(sort "$out")" = "$1" ] || fail "stdout, sorted, is not: $1"
}

it "srun reaches each node, on a machine of its own"
[ "$code" -eq 0 ] || fail "Slurm did not start"
run "${on_front[@]}" srun -N4 hostname
expect_status 0
expect_sorted $'node01\nnode02\nnode03\nnode04'
expect_idle_nodes 20

it "salloc: a command on the front, with the allocation in its environment"
run "${on_front[@]}" salloc -N2 sh -c \
    'hostname; echo "$SLURM_JOB_NODELIST"; exec srun hostname'
expect_status 0
[ "$(head -n 2 "$out")" = $'front\nnode[01-02]' ] || fail "not the allocation"
expect_idle_nodes 20

it "the exit code of a task is srun's"
run "${on_front[@]}" srun -N3 sh -c 'exit $((SLURM_PROCID == 1 ? 7 : 0))'
expect_status 7
expect_idle_nodes 20

it "sbatch, then scancel: the job is on its nodes, and then it is not"
cat >"$scratch/job" <<'SH'
#!/bin/sh
srun sleep 300
SH
run "${on_front[@]}" sbatch --parsable -N3 -o /dev/null "$scratch/job"
expect_status 0
job=$(cat "$out")
sleeps()
{
    [ "$(lab ps | grep -c ' [0-9]* [/a-z]*/sleep 300$')" -eq 3 ]
}
within 30 "the job did not start on three nodes" sleeps
on front scancel "$job"
expect_idle_nodes 30

it "down while a job runs: it goes, the nodes stay, and up works again"
run_behind "${on_front[@]}" srun -N3 sleep 300
within 30 "the step did not start on three nodes" sleeps
kill -KILL "$front_end"
lab slurm down
expect_idle_nodes
[ ! -e "$(echo "$scratch"/gpulaunch-lab.*)/slurm" ] || fail "files are left"
on node01 test ! -e /etc/slurm/slurm.conf || fail "the configuration is left"
wait "$front_end" || true

it "four on one host: one host name and address, told apart by the step alone"
lab slurm up --one-host 4
run "${on_front[@]}" srun -N4 sh -c \
    'echo "$(hostname) $SLURMD_NODENAME $SLURM_JOB_NODELIST"'
expect_status 0
expect_sorted "$(printf 'front n%d n[1-4]\n' 1 2 3 4)"

it "the lab's end is Slurm's, whatever runs"
run_behind "${on_front[@]}" srun -N3 sleep 300
within 30 "the step did not start three times" sleeps
lab down
finish
expect_no_process
! grep -qsF "$scratch/gpulaunch-lab." /proc/[0-9]*/mountinfo ||
    fail "processes are in the lab"
[ -z "$(find "$scratch" -maxdepth 1 -name 'gpulaunch-lab.*')" ] ||
    fail "the lab's folder is left"

it "mistakes are told"
make_lab --nodes 1
run env "TMPDIR=$scratch" "$project/scripts/lab" slurm
expect_status 2
run env "TMPDIR=$scratch" "$project/scripts/lab" slurm up --one-host many
expect_status 2

it "Slurm where there is no IPv4"
lab down
make_lab --nodes 2 --ipv6-only
lab slurm up
run "${on_front[@]}" srun -N2 hostname
expect_status 0
expect_sorted $'node01\nnode02'

done_stories
