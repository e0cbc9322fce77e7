/* SPDX-License-Identifier: Apache-2.0
 *
 * Socket addresses from and to text: literals only, nothing is looked up.
 */
#ifndef GPUL_PROTO_SOCKADDR_H
#define GPUL_PROTO_SOCKADDR_H

#include <stdint.h>
#include <sys/socket.h>

#include "common/error.h"

/* An IPv4 or IPv6 literal, the latter with a scope where it needs one
 * ("fe80::1%eth0"). Errors: GPUL_EINVAL. */
int gpul_sockaddr_parse(struct sockaddr_storage *out, const char *literal,
                        uint16_t port, struct gpul_error *err);

/* The literal (without brackets) into `text`, which has room for
 * GPUL_ADDRESS_BYTES_MAX + 1 bytes, and the port unless that is NULL. A
 * v4-mapped address is given as the IPv4 address that it is. Of another
 * family, "" and 0. */
void gpul_sockaddr_format(const struct sockaddr_storage *address, char *text,
                          uint16_t *port);

#endif
