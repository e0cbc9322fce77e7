/* SPDX-License-Identifier: Apache-2.0
 *
 * The secret of a job and the keys that are derived from it. Who holds the
 * secret can start and stop the job's ranks; who holds the key of a node can
 * be that node. docs/security.md says who gets what, and how.
 *
 * Nothing here ever puts a byte of a secret into an error text.
 *
 * Source: HKDF-SHA256 is RFC 5869; one key for one role is what RFC 9257
 * asks of external pre-shared keys.
 */
#ifndef GPUL_PROTO_SECRET_H
#define GPUL_PROTO_SECRET_H

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

/* 256 bits: SHA-256's own strength. */
#define GPUL_SECRET_BYTES 32u
#define GPUL_KEY_BYTES 32u
/* As text: two digits a byte, a newline and a NUL. */
#define GPUL_SECRET_TEXT_BYTES (2 * GPUL_SECRET_BYTES + 2)
/* A file that is larger holds something else, and is not read. */
#define GPUL_SECRET_FILE_BYTES_MAX (4u << 10)

/* What a key is for; that of a node is made by gpul_key_of_node. */
#define GPUL_CONTEXT_OPERATOR "gpulaunch/1 operator"
#define GPUL_CONTEXT_NCCL_MAGIC "gpulaunch/1 nccl-magic"

struct gpul_secret {
    uint8_t bytes[GPUL_SECRET_BYTES];
};

struct gpul_key {
    uint8_t bytes[GPUL_KEY_BYTES];
};

/* Overwrite what held a secret, and be sure that the compiler leaves it. */
void gpul_wipe(void *memory, size_t n);

/* A new secret from the kernel's generator; waits until that is seeded, which
 * it is once a machine has booted. GPUL_ESYS. */
int gpul_secret_draw(struct gpul_secret *out, struct gpul_error *err);

/* 64 hexadecimal digits, a newline and a NUL. */
void gpul_secret_format(char text[GPUL_SECRET_TEXT_BYTES],
                        const struct gpul_secret *secret);

/* Read the same, of any origin: n bytes, digits of either case, with or
 * without one newline (or CR and newline) at the end. A secret of one byte
 * repeated is a placeholder and no secret. GPUL_EINVAL; *out is wiped. */
int gpul_secret_parse(struct gpul_secret *out, const char *text, size_t n,
                      struct gpul_error *err);

/* Read one from a file that nobody else can read or write: a regular file of
 * this user without rights for group and others, and no symbolic link.
 *
 * A Secret that Kubernetes mounts is none of that: a link to a file of root
 * that the container may read. So a file of root on a mount that is read-only
 * here may be a link and may be read by others, since the container is the
 * border; nobody but root could have put it there.
 *
 * GPUL_ESYS (cannot be opened or read), GPUL_EINVAL (anything else), with the
 * path and what to do. */
int gpul_secret_read_file(struct gpul_secret *out, const char *path,
                          struct gpul_error *err);

/* HKDF-SHA256 in full: `n` bytes out, 8,160 at most; salt and info may be
 * empty, info has at most 1,024 bytes (a bound of OpenSSL 3.0). GPUL_EINVAL,
 * GPUL_ENOMEM; `out` is wiped then. */
struct gpul_bytes {
    const void *data;
    size_t n;
};
int gpul_hkdf(uint8_t *out, size_t n, struct gpul_bytes key,
              struct gpul_bytes salt, struct gpul_bytes info,
              struct gpul_error *err);

/* The key of this job for what `context` says. Errors as gpul_hkdf. */
int gpul_key_derive(struct gpul_key *out, const struct gpul_secret *secret,
                    const char *job_id, const char *context,
                    struct gpul_error *err);

/* The key of a node. Its name has at most GPUL_NAME_BYTES_MAX bytes
 * (GPUL_EINVAL), and is as in its Hello. */
int gpul_key_of_node(struct gpul_key *out, const struct gpul_secret *secret,
                     const char *job_id, const char *node_name,
                     struct gpul_error *err);

#endif
