/* SPDX-License-Identifier: Apache-2.0
 *
 * OpenSSL with what is used here, and no more.
 */
#ifndef GPUL_PROTO_OPENSSL_H
#define GPUL_PROTO_OPENSSL_H

#include <stdbool.h>

/* Before the first use of OpenSSL in a process; again it costs nothing. No
 * configuration file is read, and neither names of old algorithms nor error
 * texts are loaded: that would be a third of what a worker's start costs.
 * False: it cannot begin, and none of it may be used. */
bool gpul_openssl_begin(void);

/* Was it memory that its last failure was about? What came of a shortage may
 * stand before and behind it. Empties the queue of errors. */
bool gpul_openssl_is_short(void);

#endif
