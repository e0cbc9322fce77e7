/* SPDX-License-Identifier: Apache-2.0
 *
 * A folder to make files in, or to remove them from, that nobody has put a
 * link in the place of. Edge.
 */
#ifndef GPUL_COMMON_OWNFOLDER_H
#define GPUL_COMMON_OWNFOLDER_H

/* Open `name` below the folder `parent` (AT_FDCWD: where the process is): a
 * real folder, no symbolic link, that belongs to this user. Only the last
 * component of `name` is judged. Returns a descriptor, which the caller
 * closes; or -1 and errno, EPERM where it belongs to somebody else. */
int gpul_open_own_folder(int parent, const char *name);

#endif
