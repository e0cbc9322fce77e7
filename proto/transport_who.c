/* SPDX-License-Identifier: Apache-2.0
 *
 * Whose connection it is, and from where.
 */
#include "proto/sockaddr.h"
#include "proto/transport_inside.h"

/* uv_tcp_getsockname or uv_tcp_getpeername. */
typedef int (*name_fn)(const uv_tcp_t *tcp, struct sockaddr *name, int *n);

static void read_address(const struct gpul_transport *t, name_fn get_name,
                         char *text, uint16_t *port)
{
    struct sockaddr_storage ss;
    int n = sizeof(ss);
    text[0] = 0;
    if (port != NULL) {
        *port = 0;
    }
    if (t->handle.type == UV_TCP && !t->is_closing &&
        get_name(&t->tcp, (struct sockaddr *)&ss, &n) == 0) {
        gpul_sockaddr_format(&ss, text, port);
    }
}

void gpul_transport_local_address(const struct gpul_transport *t, char *text,
                                  uint16_t *port)
{
    read_address(t, uv_tcp_getsockname, text, port);
}

void gpul_transport_peer_address(const struct gpul_transport *t, char *text,
                                 uint16_t *port)
{
    read_address(t, uv_tcp_getpeername, text, port);
}

const char *gpul_transport_node_name(const struct gpul_transport *t)
{
    bool is_known = t->channel != NULL && gpul_channel_is_open(t->channel);
    return is_known ? gpul_channel_node_name(t->channel) : "";
}

const char *gpul_transport_claimed_name(const struct gpul_transport *t)
{
    return t->channel != NULL ? gpul_channel_node_name(t->channel) : "";
}

enum gpul_stranger gpul_transport_stranger(const struct gpul_transport *t)
{
    return t->channel != NULL ? gpul_channel_stranger(t->channel)
                              : GPUL_STRANGER_NONE;
}
