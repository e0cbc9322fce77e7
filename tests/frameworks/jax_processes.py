#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""JAX on several processes, set up with the three-argument call.

JAX itself reads only JAX_COORDINATOR_ADDRESS; the other two variables are a
convention that its users follow, so the program passes them by hand.
"""

import os

import jax
import numpy
from jax.experimental import multihost_utils


def main():
    jax.distributed.initialize(
        coordinator_address=os.environ["JAX_COORDINATOR_ADDRESS"],
        num_processes=int(os.environ["JAX_NUM_PROCESSES"]),
        process_id=int(os.environ["JAX_PROCESS_ID"]),
    )
    rank, size = jax.process_index(), jax.process_count()
    everyone = multihost_utils.process_allgather(numpy.array([rank + 1]))
    print(f"process {rank} of {size}: sum {int(everyone.sum())}", flush=True)
    jax.distributed.shutdown()
    if int(everyone.sum()) != size * (size + 1) // 2:
        raise SystemExit("jax_processes.py: not every process took part")


if __name__ == "__main__":
    main()
