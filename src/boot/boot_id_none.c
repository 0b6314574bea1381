/* SPDX-License-Identifier: BSD-3-Clause */
/* boot_id_none - what stands for the rendezvous by id in a build without OpenSSL. */
#include "base/status.h"
#include "boot/boot.h"

static gs_status_t refuse_id (const char *caller)
{
    return gsi_fail (GS_ERR_UNSUPPORTED,
                     "%s: this build has no OpenSSL, with which ranks prove that they know the "
                     "id: configure with --with-openssl, or use gs_comm_create or "
                     "gs_comm_from_mpi",
                     caller);
}

gs_status_t gs_unique_id_get (gs_unique_id_t *id)
{
    (void) id;
    return gsi_result (refuse_id ("gs_unique_id_get"));
}

gs_status_t gsi_boot_id_open (const gs_unique_id_t *id, int rank, int size, struct gsi_boot **out)
{
    (void) id, (void) rank, (void) size;
    *out = NULL;
    return refuse_id ("gs_comm_create_from_id");
}
