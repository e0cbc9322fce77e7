#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What nodes say of themselves in check and doctor, and what is made of it.
. "$(dirname "$0")/../lib/e2e.sh"

doubles=$bin/../tests/doubles

# judge SCENARIO ARGUMENT...: gpulaunch with the doubles of the GPU libraries.
judge()
{
    printf '%s\n' "$1" >"$scratch/scenario"
    shift
    GPULAUNCH_DOUBLE_SCENARIO=$scratch/scenario LD_LIBRARY_PATH=$doubles \
        run "$bin/gpulaunch" "$@"
}

it "doctor: facts of every area are in the record, and no secret"
NCCL_API_KEY=hunter2 run "$bin/gpulaunch" doctor --record "$scratch/record" -- \
    env TOKEN=hunter2 true
expect_status 0
expect_lacks "$scratch/record" hunter2
for key in os.kernel cpu.allowed memory.total limit.memlock.hard shm.free \
    pids.limit pci.iommu nvidia.count gpu.count rdma.ports net.hostname \
    env.NCCL_API_KEY nccl.conf.etc python.path command.path; do
    expect_has "$scratch/record" "\"$key\":"
done
expect_nothing_left

it "doctor: a command that is not there: ENV-141, its node, what to do, 20"
run "$bin/gpulaunch" doctor -- no-such-command
expect_status 20
expect_has "$out" '^FAIL +ENV-141 +local-0'
expect_has "$out" 'no-such-command: No such file or directory'
expect_has "$out" 'install it on the nodes named'
run "$bin/gpulaunch" doctor -- sh
expect_lacks "$out" 'ENV-141'

it "doctor: the time to read small files of --data-dir is in the record"
mkdir "$scratch/data"
for i in $(seq 20); do head -c 4096 /dev/urandom >"$scratch/data/$i"; done
run "$bin/gpulaunch" doctor --data-dir "$scratch/data" --record "$scratch/data.record"
expect_has "$scratch/data.record" '"data.small_files":"[0-9]+"'
expect_has "$scratch/data.record" 'HOST-531'

it "doctor: a GPU with ECC errors fails"
judge 'node * gpus 2 memory 1GiB ecc-uncorrected 3' doctor
expect_status 20
expect_has "$out" '^FAIL +GPU-231 +local-0'
expect_has "$out" '3 uncorrected ECC errors'

it "doctor: more GPU memory than host memory fails, with both figures"
judge 'node * gpus 8 memory 2000GiB' doctor
expect_status 20
expect_has "$out" '^FAIL +HOST-510 +local-0'
expect_has "$out" 'GiB for 15.6 TiB of its GPUs, 0.0[0-9] times'

it "check: the node that differs is named, and the others counted"
judge "$(printf 'node * gpus 2 memory 1GiB\nnode local-2 gpus 2 memory 1GiB ecc off model "Old"')" \
    check --local --nodes 4 --self-test off
expect_status 0
expect_has "$out" '^WARN +GPU-205 +local-2'
expect_has "$out" 'local-2 has off; 3 nodes have on'
expect_has "$out" '^WARN +GPU-203 +local-2'
expect_has "$out" 'local-2 has Old; 3 nodes have'

it "check --strict: the same fails"
judge "$(printf 'node * gpus 2 memory 1GiB\nnode local-2 gpus 2 memory 1GiB ecc off')" \
    check --local --nodes 4 --self-test off --strict
expect_status 20

it "check: NVML that crashes is unknown on that node, and no pass"
judge "$(printf 'node * gpus 2 memory 1GiB\nnode local-1 nvml-init 999')" \
    check --local --nodes 3 --self-test off
expect_has "$out" '^UNKNOWN +GPU-205 +local-1'
expect_has "$out" '^UNKNOWN +HOST-510 +local-1'
expect_has "$out" 'see why it could not be found out'
expect_nothing_left
done_stories
