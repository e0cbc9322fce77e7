/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/openssl.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

/* Where its own start fails it goes on, with locks that are not there. */
bool gpul_openssl_begin(void)
{
    int rc = OPENSSL_init_ssl(
        OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_LOAD_CRYPTO_STRINGS |
            OPENSSL_INIT_NO_ADD_ALL_CIPHERS | OPENSSL_INIT_NO_ADD_ALL_DIGESTS,
        NULL);
    return rc == 1 && OSSL_LIB_CTX_get0_global_default() != NULL;
}

bool gpul_openssl_is_short(void)
{
    bool is_short = !gpul_openssl_begin();
    unsigned long code;
    while ((code = ERR_get_error()) != 0) {
        is_short = is_short || ERR_GET_REASON(code) == ERR_R_MALLOC_FAILURE;
    }
    return is_short;
}
