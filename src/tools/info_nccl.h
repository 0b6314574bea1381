/* SPDX-License-Identifier: BSD-3-Clause */
/* info_nccl - which NCCL is found, and what becomes of it and of other versions. */
#ifndef GS_TOOLS_INFO_NCCL_H
#define GS_TOOLS_INFO_NCCL_H

/* Prints the version that is found with its row of the table, or why there is none. */
void info_nccl_found (void);

/* Prints the table, the row of the version that is found marked. */
void info_nccl_table (void);

#endif /* GS_TOOLS_INFO_NCCL_H */
