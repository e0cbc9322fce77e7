/* SPDX-License-Identifier: Apache-2.0
 *
 * gpulaunch manifest: the files by which others start the nodes of a job. A
 * Job for Kubernetes, a batch script for Slurm, services for Docker Compose,
 * a module for Terraform. Pure.
 *
 * None of them has the secret of the job in it: they say where it will be,
 * and their first lines how it gets there.
 */
#ifndef LAUNCHER_MANIFEST_H
#define LAUNCHER_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/error.h"

enum manifest_kind {
    MANIFEST_KUBERNETES = 1,
    MANIFEST_SLURM = 2,
    MANIFEST_COMPOSE = 3,
    MANIFEST_TERRAFORM = 4,
};

enum {
    MANIFEST_PORT = 29400, /* of torchrun's rendezvous */
    /* A host name has 63 bytes; "-node-0-99999" follows in a JobSet. */
    MANIFEST_NAME_BYTES_MAX = 48,
    MANIFEST_RETRIES_MAX = 1000,
    MANIFEST_USER = 1000, /* of the processes in a pod */
    MANIFEST_USER_MAX = INT32_MAX,
};

/* Strings are borrowed. */
struct manifest {
    enum manifest_kind kind;
    const char *name;       /* of the job, and what is made for it */
    const char *name_space; /* of Kubernetes; NULL: none is written */
    const char *image;      /* Kubernetes and Compose */
    const char *secret;     /* name of a Secret; NULL: <name>-secret */
    const char *gpu_resource;
    bool is_jobset;
    uint32_t user;    /* of the processes in a pod; 0: root */
    uint32_t retries; /* of the whole job, after exit code 75 */
    uint32_t nodes;
    uint32_t gpus; /* on each node; 0: none are asked for */
    uint16_t port; /* of the coordinator */
    uint32_t grace_ms;
    uint32_t timeout_ms; /* of the run; 0: none */
    uint32_t join_timeout_ms;
    /* For the gpulaunch that runs the command: "--self-test=full" and so on,
     * without the options that follow from the above. */
    char *const *options;
    size_t option_count;
    char *const *command;
    size_t command_count;
};

/* The name of a kind, and back; 0: there is none of that name. */
const char *manifest_kind_name(enum manifest_kind kind);
enum manifest_kind manifest_kind_find(const char *name);

/* A name of a Job is one of a Service and the beginning of a host's: lower-
 * case letters, digits and '-', a letter first, no '-' last. */
bool manifest_name_is_valid(const char *name);

/* Kubernetes' other names. A namespace is a label of RFC 1123: up to 63 of
 * lower-case letters, digits and '-', which neither begins nor ends it. A
 * Secret has several of these with dots between, up to 253 bytes. */
bool manifest_namespace_is_valid(const char *name);
bool manifest_secret_is_valid(const char *name);

/* Append the file. Errors: GPUL_EINVAL (a text that the language cannot
 * hold), GPUL_ELIMIT, GPUL_ENOMEM. */
int manifest_write(struct gpul_buf *out, const struct manifest *m,
                   struct gpul_error *err);

/* One for each kind. */
int manifest_kubernetes(struct gpul_buf *out, const struct manifest *m,
                        struct gpul_error *err);
int manifest_slurm(struct gpul_buf *out, const struct manifest *m,
                   struct gpul_error *err);
int manifest_compose(struct gpul_buf *out, const struct manifest *m,
                     struct gpul_error *err);
int manifest_terraform(struct gpul_buf *out, const struct manifest *m,
                       struct gpul_error *err);

#endif
