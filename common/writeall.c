/* SPDX-License-Identifier: Apache-2.0 */
#include "common/writeall.h"

#include <errno.h>
#include <unistd.h>

int gpul_write_all(int fd, const void *bytes, size_t n)
{
    const char *at = bytes;
    while (n > 0) {
        ssize_t done = write(fd, at, n);
        if (done < 0 && errno == EINTR) {
            continue;
        }
        if (done < 0) {
            return errno;
        }
        at += done;
        n -= (size_t)done;
    }
    return 0;
}
