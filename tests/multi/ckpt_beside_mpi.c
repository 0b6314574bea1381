/* SPDX-License-Identifier: BSD-3-Clause */
/* ckpt_beside_mpi - ckpt_beside with the parallel HDF5 as the program's own. */
#include "ckpt_beside.c"
