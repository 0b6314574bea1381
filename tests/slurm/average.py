# SPDX-License-Identifier: BSD-3-Clause
"""average.py LIBGRADSYNC - a Python rank that averages its number once, as average.f90 does,
and checks what gs-env tells it."""
import ctypes
import os
import sys

gs = ctypes.CDLL(sys.argv[1])
gs.gs_last_error.restype = ctypes.c_char_p


def must(status):
    if status:
        sys.exit(f"average.py: {gs.gs_last_error().decode()}")


comm = ctypes.c_void_p()
must(gs.gs_comm_create(None, ctypes.byref(comm)))
rank, size = gs.gs_comm_rank(comm), gs.gs_comm_size(comm)
x = ctypes.c_double(rank)
GS_F64 = 4  # gs_dtype_t of gradsync.h
must(gs.gs_allreduce_avg(comm, ctypes.byref(x), ctypes.c_size_t(1), GS_F64, None))
told = [os.environ[name] for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")]
true = [rank, size, gs.gs_comm_local_rank(comm), gs.gs_comm_local_size(comm)]
if [int(text) for text in told] != true:
    sys.exit(f"average.py: gs-env says {told}, it is {true}")
if x.value != (size - 1) / 2:
    sys.exit(f"average.py: wrong average {x.value}")
print(f"Python rank {rank}, meeting at {os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}")
must(gs.gs_comm_destroy(comm))
