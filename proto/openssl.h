/* SPDX-License-Identifier: Apache-2.0
 *
 * OpenSSL with what is used here, and no more.
 */
#ifndef GPUL_PROTO_OPENSSL_H
#define GPUL_PROTO_OPENSSL_H

/* Before the first use of OpenSSL in a process; again it costs nothing. No
 * configuration file is read, and neither names of old algorithms nor error
 * texts are loaded: that would be a third of what a worker's start costs. */
void gpul_openssl_begin(void);

#endif
