/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/readfile.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum { PIECE_BYTES = 16 << 10 };

static int read_all(struct gpul_buf *out, int fd, const char *path,
                    struct gpul_error *err)
{
    char piece[PIECE_BYTES];
    for (;;) {
        ssize_t n = read(fd, piece, sizeof(piece));
        if (n == 0) {
            return 0;
        }
        if (n < 0 && errno != EINTR) {
            return gpul_fail_errno(err, errno, "cannot read %s", path);
        }
        if (n > 0 && gpul_buf_append(out, piece, (size_t)n) != 0) {
            return gpul_fail(err, GPUL_ELIMIT,
                             "%s is larger than %zu bytes, too large for a "
                             "list of nodes",
                             path, out->bytes_max);
        }
    }
}

int readfile(struct gpul_buf *out, const char *path, struct gpul_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return gpul_fail_errno(err, errno, "cannot open %s", path);
    }
    int rc = read_all(out, fd, path, err);
    close(fd);
    return rc;
}
