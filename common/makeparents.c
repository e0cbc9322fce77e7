/* SPDX-License-Identifier: Apache-2.0 */
#include "common/makeparents.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

int gpul_make_parents(const char *path, struct gpul_error *err)
{
    char part[PATH_MAX];
    size_t n = strlen(path);
    if (n == 0 || n >= sizeof(part)) {
        return gpul_fail(err, GPUL_EINVAL, "\"%.60s\": not a usable path",
                         path);
    }
    memcpy(part, path, n + 1);
    for (char *slash = strchr(part + 1, '/'); slash != NULL;
         slash = strchr(slash + 1, '/')) {
        struct stat st;
        *slash = 0;
        /* Asked first: mkdir on a read-only file system says so even of what
         * is there. Another process may be faster. */
        if (stat(part, &st) != 0 && mkdir(part, 0700) != 0 && errno != EEXIST) {
            return gpul_fail_errno(err, errno, "cannot create %s", part);
        }
        *slash = '/';
    }
    return 0;
}
