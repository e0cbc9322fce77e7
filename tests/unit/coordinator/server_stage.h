/* SPDX-License-Identifier: Apache-2.0
 *
 * The real server in a process of its own; the test plays everybody else.
 */
#ifndef TESTS_UNIT_SERVER_STAGE_H
#define TESTS_UNIT_SERVER_STAGE_H

#include <stdint.h>
#include <sys/types.h>

#include "proto/frame.h"
#include "proto/message.h"
#include "proto/secret.h"
#include "tests/lib/wire.h"

struct stage {
    pid_t server;
    struct gpul_secret *lent; /* to it, in memory of both */
    int front_end;
    uint16_t port;
};

/* A stream of frames to be read one by one. */
struct reader {
    struct wire wire;
    struct gpul_deframer deframer;
    enum gpul_peer from;
};

/* The job's secret, as wire_keyring makes it; 0: nobody shows a key. */
void stage_start(struct stage *s, uint8_t secret);

/* The server's exit code, within the wait of the test's own time-out. */
int stage_reap(struct stage *s);

/* A bare connection to the server. */
int stage_dial(const struct stage *s);

void reader_init(struct reader *r, int fd, enum gpul_peer from);
void reader_release(struct reader *r);

/* The next frame; NULL when the stream has ended. The caller releases it. */
Gpul__Frame *reader_next(struct reader *r);

/* Skip to a frame of this kind; the caller releases it. */
Gpul__Frame *reader_expect(struct reader *r, unsigned body_case);

/* The same, of which only that it comes is wanted. */
void reader_expect_one(struct reader *r, unsigned body_case);

/* The front end's last frame. */
void reader_expect_end(struct reader *front_end, uint32_t code);

void stage_send(struct reader *to, const Gpul__Frame *frame);

/* Job "job" of so many nodes: node0, node1 ... */
void stage_send_job(struct reader *front_end, uint32_t node_count,
                    uint32_t join_timeout_ms);
void stage_send_hello(struct reader *node, const char *name);
void stage_send_ready(struct reader *node);

/* The node's only rank has ended, and it is idle. */
void stage_send_exit(struct reader *node, uint32_t rank, uint32_t code);

/* A frame of the first generation. */
Gpul__Frame stage_frame(void);

#endif
