#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
import sys

import h5py
import matplotlib.pyplot as plt

path, name, picture = sys.argv[1:]   # checkpoints/ck-000000001000.h5 u u.png
with h5py.File(path, "r") as file:
    field = file["sharded"][name]
    values = field[()]               # all of it; field[:10] is some rows
    units = field.attrs.get("units", b"").decode()   # texts come as bytes
    step = file["gs/step"][()]

while values.ndim > 2:
    values = values[len(values) // 2]   # the middle layer
plt.pcolormesh(values)   # to the right the last dimension, which is the first of Fortran
plt.colorbar(label=f"{name} {units}")
plt.title(f"step {step}")
plt.savefig(picture)
