#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch on several ranks: DistributedDataParallel with gloo, synthetic data.

    gpulaunch --local --nodes 4 -- python3 docs/examples/torch_train.py

init_process_group() without an address reads RANK, WORLD_SIZE, MASTER_ADDR
and MASTER_PORT, which gpulaunch sets for every rank.
"""

import datetime
import hashlib

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

FEATURES = 8
BATCH = 64
STEPS = 100


def main():
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=60))
    rank, world_size = dist.get_rank(), dist.get_world_size()

    torch.manual_seed(1)
    truth = torch.randn(FEATURES, 1)
    model = DistributedDataParallel(torch.nn.Linear(FEATURES, 1, bias=False))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    # Every rank draws its own batches.
    source = torch.Generator().manual_seed(100 + rank)
    for _ in range(STEPS):
        x = torch.randn(BATCH, FEATURES, generator=source)
        loss = torch.mean((model(x) - x @ truth) ** 2)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    weights = model.module.weight.detach().numpy()
    digest = hashlib.sha256(weights.tobytes()).hexdigest()[:16]
    print(f"rank {rank} of {world_size}: loss {loss.item():.6f}, "
          f"weights {digest}", flush=True)
    dist.destroy_process_group()
    if not loss.item() < 1e-3:
        raise SystemExit(f"torch_train.py: the loss is still {loss.item()}")


if __name__ == "__main__":
    main()
