/* SPDX-License-Identifier: BSD-3-Clause */
/* keep - memory that a network still owns, because of a request that did not end. */
#ifndef GS_HOST_KEEP_H
#define GS_HOST_KEEP_H

/* Never frees [memory], or NULL. Any thread. */
void gsi_keep (void *memory);

#endif /* GS_HOST_KEEP_H */
