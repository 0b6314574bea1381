#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""autograd - the training of doc/examples/07-infonce/contrastive.c in PyTorch, on one rank, with autograd.

usage: autograd FILE: the lines of `contrastive --parameters`. Says how far the parameters there are
from those trained here; fails if one differs by more than 1e-10 of the largest.
"""
import ctypes
import sys

import torch

IN, OUT, BATCH, STEPS = 6, 4, 64, 100

libc = ctypes.CDLL(None)
libc.erand48.restype = ctypes.c_double


def numbers(first, count):
    """[count] numbers from -1 to 1 of the sequence that erand48 begins with [first]."""
    seed = (ctypes.c_ushort * 3)(*first)
    return [2 * libc.erand48(seed) - 1 for _ in range(count)]


def samples():
    drawn = iter(numbers((1, 2, 3), 2 * BATCH * IN))
    x, y = [], []
    for _ in range(BATCH):
        x.append([next(drawn) for _ in range(IN)])
        y.append([x[-1][(i + 1) % IN] + 0.2 * next(drawn) for i in range(IN)])
    return torch.tensor(x, dtype=torch.float64), torch.tensor(y, dtype=torch.float64)


def main(path):
    x, y = samples()
    start = torch.tensor(numbers((4, 5, 6), 2 * OUT * IN), dtype=torch.float64)
    w, v = (part.reshape(OUT, IN).clone().requires_grad_() for part in start.split(OUT * IN))
    scale = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    trained = [w, v, scale]
    for _ in range(STEPS):
        a = torch.nn.functional.normalize(x @ w.T)
        b = torch.nn.functional.normalize(y @ v.T)
        loss = torch.nn.functional.cross_entropy(scale * (a @ b.T), torch.arange(BATCH))
        with torch.no_grad():
            for p, g in zip(trained, torch.autograd.grad(loss, trained)):
                p -= 0.5 * g
    ours = torch.cat([p.detach().flatten() for p in trained])
    with open(path, encoding="ascii") as file:
        theirs = [float(line) for line in file if not line.startswith("step")]
    if len(theirs) != len(ours):
        sys.exit(f"{path} has {len(theirs)} parameters, not {len(ours)}")
    off = (ours - torch.tensor(theirs, dtype=torch.float64)).abs().max() / ours.abs().max()
    print(f"autograd: parameters differ by {off:.1e} of the largest")
    return not off <= 1e-10


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
