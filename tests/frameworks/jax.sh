#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Real JAX: jax.distributed.initialize with the three arguments that the
# environment holds.
. "$(dirname "$0")/lib.sh"

needs jax
bound_seconds=180

it "2 processes form one world and see each other's values"
launch --nodes 2 -- \
    "$framework_python" "$project/tests/frameworks/jax_processes.py"
expect_status 0
expect_has "$out" 'process 0 of 2: sum 3'
expect_has "$out" 'process 1 of 2: sum 3'
expect_no_process

done_stories
