/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/ulimits.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <sys/resource.h>

#include "common/units.h"

/* Sockets to the peers, pipes and files of data loaders: less is often too
 * little, and the old default (1024) always is at some size. */
enum { FILES_ENOUGH = 4096 };

static uint64_t hard_limit(int which)
{
    struct rlimit limit;
    if (getrlimit((__rlimit_resource_t)which, &limit) != 0 ||
        limit.rlim_max == RLIM_INFINITY) {
        return UINT64_MAX;
    }
    return limit.rlim_max;
}

static bool has_rdma(const char *root)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/sys/class/infiniband", root);
    DIR *folder = opendir(path);
    bool found = false;
    for (struct dirent *e; folder != NULL && (e = readdir(folder)) != NULL;) {
        found |= e->d_name[0] != '.';
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return found;
}

void ulimits_read(struct ulimits *out, const char *root)
{
    out->files = hard_limit(RLIMIT_NOFILE);
    out->locked_memory = hard_limit(RLIMIT_MEMLOCK);
    out->has_rdma = has_rdma(root);
}

size_t ulimits_notices(char out[ULIMITS_NOTICES_MAX][ULIMITS_NOTICE_BYTES],
                       const struct ulimits *u)
{
    size_t n = 0;
    char size[32];
    if (u->has_rdma && u->locked_memory != UINT64_MAX) {
        gpul_format_size(size, u->locked_memory);
        snprintf(out[n++], ULIMITS_NOTICE_BYTES,
                 "locked memory (ulimit -l) could only be raised to %s, the "
                 "hard limit; RDMA needs it unlimited: set memlock in "
                 "limits.conf, or LimitMEMLOCK= of the service",
                 size);
    }
    if (u->files < FILES_ENOUGH) {
        snprintf(out[n++], ULIMITS_NOTICE_BYTES,
                 "open files (ulimit -n) could only be raised to %llu, the "
                 "hard limit; training often needs more: set nofile in "
                 "limits.conf, or LimitNOFILE= of the service",
                 (unsigned long long)u->files);
    }
    return n;
}

void ulimits_tell(ulimits_notice_fn on_notice, void *arg)
{
    char text[ULIMITS_NOTICES_MAX][ULIMITS_NOTICE_BYTES];
    struct ulimits limits;
    ulimits_read(&limits, "");
    size_t n = ulimits_notices(text, &limits);
    for (size_t i = 0; i < n; i++) {
        on_notice(arg, text[i]);
    }
}
