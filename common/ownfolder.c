/* SPDX-License-Identifier: Apache-2.0 */
#include "common/ownfolder.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

int gpul_open_own_folder(int parent, const char *name)
{
    struct stat st;
    int fd =
        openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || (fstat(fd, &st) == 0 && st.st_uid == geteuid())) {
        return fd;
    }
    close(fd);
    errno = EPERM;
    return -1;
}
