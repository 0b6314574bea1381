/* SPDX-License-Identifier: BSD-3-Clause */
/* mac - codes by which ranks that share a key know each other's bytes: HMAC-SHA256 of libcrypto.
 */
#ifndef GS_BOOT_MAC_H
#define GS_BOOT_MAC_H

#include <stdbool.h>
#include <stddef.h>

#include "gradsync.h"

#define GSI_KEY_BYTES 32
#define GSI_MAC_BYTES 32

/* GS_ERR_UNSUPPORTED, for [caller], in a build without libcrypto. */
gs_status_t gsi_mac_there (const char *caller);

/* The code of [bytes] at [data] behind [head_bytes] at [head]; false if libcrypto fails. */
bool gsi_mac_make (const unsigned char key[GSI_KEY_BYTES], const void *head, size_t head_bytes,
                   const void *data, size_t bytes, unsigned char mac[GSI_MAC_BYTES]);

/* Whether both are the same, in a time that does not tell where they differ. */
bool gsi_mac_equal (const unsigned char a[GSI_MAC_BYTES], const unsigned char b[GSI_MAC_BYTES]);

#endif /* GS_BOOT_MAC_H */
