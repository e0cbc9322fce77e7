/* SPDX-License-Identifier: Apache-2.0
 *
 * The sockets under the double of libnccl: IPv4, every wait ended by an abort
 * descriptor, failures with the codes and words that NCCL has for them.
 * Source: NCCL 2.30, src/misc/socket.cc and src/os/linux.cc. */
#ifndef DOUBLES_NCCL_WIRE_H
#define DOUBLES_NCCL_WIRE_H

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>

#include "worker/nccl_api.h"

/* All functions give an `enum nccl_result`; a socket that fails is closed by
 * its owner. `abort_fd` is readable once the communicator is aborted, and
 * then every wait ends with NCCL_INTERNAL_ERROR; -1: nothing ends a wait. */

/* What the last failure was, for ncclGetLastError. Safe in every thread. */
int nccl_fail(enum nccl_result code, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
const char *nccl_last_error(void);

/* The address that NCCL_SOCKET_IFNAME chooses: `=name` exactly, `name` what
 * begins so, `^name` what does not. Unset: loopback. */
int wire_interface(struct sockaddr_in *address);

/* Listens at `address`; a port of 0 is replaced by the one given. */
int wire_listen(struct sockaddr_in *address, int *fd);

/* Connects and says who it is: `magic`, then the hello of `bytes` bytes. A
 * refusal is tried again as NCCL_SOCKET_RETRY_CNT and
 * NCCL_SOCKET_RETRY_SLEEP_MSEC say, by default for a minute. */
int wire_connect(const struct sockaddr_in *address, uint64_t magic,
                 const void *hello, size_t bytes, int abort_fd, int *fd);

/* The next connection that says `magic`, with its hello; any other is closed
 * and forgotten. */
int wire_accept(int listen_fd, uint64_t magic, void *hello, size_t bytes,
                int abort_fd, int *fd);

/* Sends and receives at once; either may be of no bytes. */
int wire_exchange(int send_fd, const void *out, size_t out_bytes,
                  int receive_fd, void *in, size_t in_bytes, int abort_fd);

/* Moves what can be moved without waiting; *bytes is what is left of it. */
int wire_send(int fd, const char **out, size_t *bytes);
int wire_receive(int fd, char **in, size_t *bytes);

/* poll() on `fds`, the first of which is the abort descriptor. */
struct pollfd;
int wire_wait(struct pollfd *fds, size_t count);

/* Waits for an abort; the first only until `until_ns` of CLOCK_MONOTONIC. */
int wire_sleep_until(uint64_t until_ns, int abort_fd);
int wire_sleep_forever(int abort_fd);
uint64_t wire_now_ns(void);

/* "127.0.0.1<4711>", in `out`. */
const char *wire_text(const struct sockaddr_in *address, char out[64]);

#endif
