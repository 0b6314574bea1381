#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""network - writes a network of random numbers as TorchScript, for FTorch.

usage: network.py FILE [SEED]
"""
import sys

import torch

HIDDEN = 128


def main():
    torch.manual_seed(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    sizes = [2, HIDDEN, HIDDEN, HIDDEN, HIDDEN]
    layers = [layer for n, m in zip(sizes, sizes[1:]) for layer in (torch.nn.Linear(n, m), torch.nn.Tanh())]
    network = torch.nn.Sequential(*layers, torch.nn.Linear(HIDDEN, 1)).double()
    torch.jit.script(network).save(sys.argv[1])


if __name__ == "__main__":
    main()
