/* SPDX-License-Identifier: BSD-3-Clause */
/* mac - codes by which ranks that share a key know each other's bytes: HMAC-SHA256 of libcrypto.
 */
#include "boot/mac.h"

#include "base/status.h"
#include "config.h"

#ifdef HAVE_OPENSSL

#include <openssl/crypto.h>
#include <openssl/evp.h>

gs_status_t gsi_mac_there (const char *caller)
{
    (void) caller;
    return GS_OK;
}

/* N.B. EVP_DigestSign is in OpenSSL 1.1.1 and in 3; HMAC_CTX and EVP_MAC are each in one of them.
 */
bool gsi_mac_make (const unsigned char key[GSI_KEY_BYTES], const void *head, size_t head_bytes,
                   const void *data, size_t bytes, unsigned char mac[GSI_MAC_BYTES])
{
    EVP_PKEY *pkey = EVP_PKEY_new_raw_private_key (EVP_PKEY_HMAC, NULL, key, GSI_KEY_BYTES);
    EVP_MD_CTX *context = EVP_MD_CTX_new ();
    size_t length = GSI_MAC_BYTES;
    bool made = pkey && context &&
                EVP_DigestSignInit (context, NULL, EVP_sha256 (), NULL, pkey) == 1 &&
                EVP_DigestSignUpdate (context, head, head_bytes) == 1 &&
                EVP_DigestSignUpdate (context, data, bytes) == 1 &&
                EVP_DigestSignFinal (context, mac, &length) == 1 && length == GSI_MAC_BYTES;

    EVP_MD_CTX_free (context);
    EVP_PKEY_free (pkey);
    return made;
}

bool gsi_mac_equal (const unsigned char a[GSI_MAC_BYTES], const unsigned char b[GSI_MAC_BYTES])
{
    return !CRYPTO_memcmp (a, b, GSI_MAC_BYTES);
}

#else

gs_status_t gsi_mac_there (const char *caller)
{
    return gsi_fail (GS_ERR_UNSUPPORTED,
                     "%s: this build has no OpenSSL, with which ranks prove that they know the "
                     "id: configure with --with-openssl, or use gs_comm_create or "
                     "gs_comm_from_mpi",
                     caller);
}

bool gsi_mac_make (const unsigned char key[GSI_KEY_BYTES], const void *head, size_t head_bytes,
                   const void *data, size_t bytes, unsigned char mac[GSI_MAC_BYTES])
{
    (void) key, (void) head, (void) head_bytes, (void) data, (void) bytes, (void) mac;
    return false;
}

bool gsi_mac_equal (const unsigned char a[GSI_MAC_BYTES], const unsigned char b[GSI_MAC_BYTES])
{
    (void) a, (void) b;
    return false;
}

#endif
