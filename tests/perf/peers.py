#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""peers.py gradients MODEL.params | checkpoint FOLDER MEBIBYTES - what PyTorch takes, for table.

Started by mpirun, as ddp.py, which knows what it needs. Rank 0 prints lines "name: milliseconds",
medians of rounds. Exit status 77: there is no torch here.
"""
import os
import shutil
import statistics
import sys
import time

import ddp
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp

ROUNDS = 7
CKPT_ROUNDS = 3


def slowest(call):
    """Milliseconds of the slowest rank."""
    dist.barrier()
    begin = time.perf_counter()
    call()
    took = torch.tensor([(time.perf_counter() - begin) * 1e3])
    dist.all_reduce(took, dist.ReduceOp.MAX)
    return took.item()


def say(name, times):
    if dist.get_rank() == 0:
        print(f"{name}: {statistics.median(times):.2f}")


def gradients(params):
    """Of DDP, what its backward pass takes beyond that of the same model without it."""
    sizes = ddp.sizes_of(params)
    alone, model = ddp.Layers(sizes), torch.nn.parallel.DistributedDataParallel(ddp.Layers(sizes))
    grads = [torch.ones(size) for size in sizes]

    def per_tensor():
        for grad in grads:
            dist.all_reduce(grad)
            grad /= dist.get_world_size()

    def backward(layers):
        layers.zero_grad(set_to_none=False)
        loss = layers()
        return slowest(loss.backward)

    times = {"gloo per tensor": [], "DDP": []}
    for turn in range(2 + ROUNDS):  # DDP rebuilds its buckets after the first
        one, other = slowest(per_tensor), backward(model) - backward(alone)
        if turn >= 2:
            times["gloo per tensor"].append(one)
            times["DDP"].append(other)
    for name, values in times.items():
        say(name, values)


def checkpoint(folder, mebibytes):
    """Half of it is the same on all ranks and written once, half is each rank's own."""
    rank, size = dist.get_rank(), dist.get_world_size()
    part = int(mebibytes) << 17  # floats of a half
    state = {f"params{i}": torch.ones(part // 16) for i in range(16)}
    state[f"field{rank}"] = torch.ones(part // size)
    path = os.path.join(folder, "torch")
    times = []
    for _ in range(1 + CKPT_ROUNDS):
        if rank == 0:
            shutil.rmtree(path, ignore_errors=True)
        times.append(slowest(lambda: dcp.save(state, checkpoint_id=path)))
    say("torch.distributed.checkpoint", times[1:])
    if rank == 0:
        shutil.rmtree(path)


def main():
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29517")
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=int(os.environ["OMPI_COMM_WORLD_RANK"]),
                            world_size=int(os.environ["OMPI_COMM_WORLD_SIZE"]))
    {"gradients": gradients, "checkpoint": checkpoint}[sys.argv[1]](*sys.argv[2:])
    dist.destroy_process_group()


main()
