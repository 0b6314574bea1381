#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""ddp.py BYTES|MODEL.params - averages gradients by PyTorch's DistributedDataParallel with gloo.

Started by mpirun, whose variables name the ranks; MASTER_ADDR and MASTER_PORT say where they meet.
The model has layers of 4 MiB, or is one of src/tools/bench/models, and its backward pass does
nearly nothing, so that its time is that of the communication. Rank 0 prints the median of 11 rounds
as gs-bench --json does.
Exit status 77: there is no torch here.
"""
import json
import math
import os
import socket
import statistics
import sys
import time

try:
    import torch
    import torch.distributed as dist
except ImportError as error:
    print("skip:", error, file=sys.stderr)
    sys.exit(77)

LAYER = 1 << 20  # floats
ROUNDS = 11


class Layers(torch.nn.Module):
    """Parameters whose gradients are ones."""

    def __init__(self, sizes):
        super().__init__()
        self.layers = torch.nn.ParameterList(
            torch.nn.Parameter(torch.zeros(size)) for size in sizes)

    def forward(self):
        return sum(layer.sum() for layer in self.layers)


def sizes_of(what):
    """Floats of each parameter."""
    if not what.endswith(".params"):
        floats = int(what) // 4
        return [LAYER] * (floats // LAYER) + [floats % LAYER] * (floats % LAYER > 0)
    with open(what, encoding="ascii") as file:
        lines = [line.split("#")[0].split() for line in file]
    return [math.prod(map(int, words[2:])) for words in lines if words]


def interface():
    """The one network device that is not the loopback, if there is just one."""
    names = [name for _, name in socket.if_nameindex() if name != "lo"]
    return names[0] if len(names) == 1 else "lo"


def backward_seconds(model):
    model.zero_grad(set_to_none=False)
    loss = model()
    dist.barrier()
    begin = time.perf_counter()
    loss.backward()
    return time.perf_counter() - begin


def main():
    rank = int(os.environ.get("OMPI_COMM_WORLD_RANK", "0"))
    size = int(os.environ.get("OMPI_COMM_WORLD_SIZE", "1"))
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29513")
    os.environ.setdefault("GLOO_SOCKET_IFNAME", interface())
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=size)
    sizes = sizes_of(sys.argv[1])
    model = torch.nn.parallel.DistributedDataParallel(Layers(sizes))
    backward_seconds(model)  # DDP rebuilds its buckets after the first
    backward_seconds(model)
    times = []
    for _ in range(ROUNDS):
        slowest = torch.tensor([backward_seconds(model)])
        dist.all_reduce(slowest, dist.ReduceOp.MAX)
        times.append(slowest.item())
    if rank == 0:
        print(json.dumps({"bytes": 4 * sum(sizes), "time_us": statistics.median(times) * 1e6,
                          "raw_time_us": 0.0}, separators=(",", ":")))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
