/* SPDX-License-Identifier: Apache-2.0
 *
 * What this node is and has, read once before Hello; it must stay well
 * below a millisecond. Edge.
 */
#ifndef WORKER_FACTS_H
#define WORKER_FACTS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"
#include "proto/message.h"

/* GPUs of one host that are told apart by name. */
enum { FACTS_DEVICES_MAX = 64 };

struct facts {
    /* For Hello; `address` is left empty. Points into the struct. */
    Gpul__Facts message;
    /* GPUs for the ranks: "0", "1", ..., or as CUDA_VISIBLE_DEVICES names
     * them (which may be UUIDs). */
    char **devices;
    size_t device_count;
    bool devices_are_restricted;
    bool devices_are_amd; /* there are AMD's GPUs and none of NVIDIA's */
};

/* Values of the variables that choose devices; NULL: not set. */
struct facts_visible {
    const char *cuda; /* CUDA_VISIBLE_DEVICES: HIP reads it as well */
    const char *hip;  /* HIP_VISIBLE_DEVICES */
    const char *rocr; /* ROCR_VISIBLE_DEVICES: HIP numbers what it leaves */
};

/* `root` stands before every path of /proc, /sys and /dev ("" in the
 * program, a folder in tests). `visible` may be NULL. What cannot be read is
 * left empty or 0: no fact is worth a failed start. Errors: GPUL_ENOMEM. */
int facts_read(struct facts *f, const char *root,
               const struct facts_visible *visible, struct gpul_error *err);

/* Those of this machine and of this process's environment. */
int facts_read_here(struct facts *f, struct gpul_error *err);

void facts_release(struct facts *f);

/* Look at the interfaces again. */
void facts_renew_interfaces(struct facts *f);

/* Name of the interface that has this address, or NULL. */
const char *facts_interface_of(const struct facts *f, const char *address);

#endif
