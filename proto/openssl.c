/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/openssl.h"

#include <openssl/ssl.h>

void gpul_openssl_begin(void)
{
    OPENSSL_init_ssl(
        OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_LOAD_CRYPTO_STRINGS |
            OPENSSL_INIT_NO_ADD_ALL_CIPHERS | OPENSSL_INIT_NO_ADD_ALL_DIGESTS,
        NULL);
}
