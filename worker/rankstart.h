/* SPDX-License-Identifier: Apache-2.0
 *
 * What a rank is started with: its start specification, and its descriptors.
 * Edge.
 *
 * What can go wrong is a refusal: a command that is not there, an environment
 * that cannot be built, no descriptors. The first one holds for all ranks
 * after it, which are not tried.
 */
#ifndef WORKER_RANKSTART_H
#define WORKER_RANKSTART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/error.h"
#include "worker/keeperwire.h"
#include "worker/launch.h"
#include "worker/ranklogs.h"

/* What the rank has, from its descriptor 0 on; and what stays here and with
 * the keeper: the first two are what it writes to, by stream; then, where there
 * are such, what it beats through and what it tells its figure by; the last,
 * with `has_input`, what it reads. */
struct rankstart_fds {
    int child[KEEPER_CHILD_FDS_MAX];
    size_t child_count;
    int kept[KEEPER_KEPT_FDS_MAX];
    size_t kept_count;
    bool has_input;
};

struct rankstart {
    const struct launch *launch;
    struct ranklogs *logs;
    char *path;           /* of the command, found once; owned */
    struct gpul_buf spec; /* of the last rank made, encoded */
    int exec_errno;       /* of the refusal; 0: there is none */
    char why_not[GPUL_ERROR_TEXT_BYTES];
};

void rankstart_init(struct rankstart *s);
void rankstart_release(struct rankstart *s);

/* For the ranks of this launch, which must outlive them, as the logs. */
void rankstart_begin(struct rankstart *s, const struct launch *launch,
                     struct ranklogs *logs);

void rankstart_refuse(struct rankstart *s, int exec_errno, const char *text);

/* Make s->spec and the descriptors of a rank; one that reads no input has
 * /dev/null. False: refused. */
bool rankstart_make(struct rankstart *s, uint32_t local_rank, bool reads_input,
                    struct rankstart_fds *fds);

void rankstart_close(struct rankstart_fds *fds);

/* What the coordinator is to make 127 (ENOENT) or 126 of, given why the
 * command could not be executed. */
int rankstart_sharpen(const struct rankstart *s, int exec_errno);

#endif
