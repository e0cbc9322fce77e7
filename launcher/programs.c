/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/programs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int find_one(char *out, const char *directory, const char *name,
                    struct gpul_error *err)
{
    static const char *const places[] = {"", "/../libexec/gpulaunch"};
    for (size_t i = 0; i < 2; i++) {
        int n = snprintf(out, PATH_MAX, "%s%s/%s", directory, places[i], name);
        if (n < PATH_MAX && access(out, X_OK) == 0) {
            return 0;
        }
    }
    return gpul_fail(err, GPUL_ENOTFOUND,
                     "%s is neither in %s nor in %s/../libexec/gpulaunch; "
                     "install gpulaunch as a whole",
                     name, directory, directory);
}

int programs_find(char out[PATH_MAX], const char *name, struct gpul_error *err)
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (n < 0) {
        return gpul_fail_errno(err, errno, "cannot read /proc/self/exe");
    }
    self[n] = '\0';
    char *slash = strrchr(self, '/');
    if (slash != NULL) {
        *slash = '\0';
    }
    return find_one(out, self, name, err);
}
