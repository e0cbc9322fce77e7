/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/nccl_build.h"

#include <ctype.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Far above what any NCCL has of each; the code for GPUs lies elsewhere. */
enum { SECTIONS_MAX = 4096, CONSTANTS_BYTES_MAX = 64 << 20 };

/* ---- the text ----------------------------------------------------------- */

/* "13.0" at the beginning of `bytes`, or 0. */
static size_t version_bytes(const char *bytes, size_t n)
{
    size_t major = 0;
    while (major < n && isdigit((unsigned char)bytes[major])) {
        major++;
    }
    size_t end = major + 1;
    while (end < n && isdigit((unsigned char)bytes[end])) {
        end++;
    }
    bool is_version =
        major > 0 && major < n && bytes[major] == '.' && end > major + 1;
    return is_version ? end : 0;
}

/* `bytes` stand behind the version: a suffix of its own may come first. */
static bool take(char out[NCCL_BUILD_BYTES], const char *bytes, size_t n)
{
    static const char mark[] = "+cuda";
    size_t at = 0;
    while (at < n && bytes[at] != '+' && isgraph((unsigned char)bytes[at])) {
        at++;
    }
    size_t head = strlen(mark);
    if (n - at < head || memcmp(bytes + at, mark, head) != 0) {
        return false;
    }
    size_t digits = version_bytes(bytes + at + head, n - at - head);
    if (digits == 0 || head + digits >= NCCL_BUILD_BYTES) {
        return false;
    }
    memcpy(out, bytes + at, head + digits);
    out[head + digits] = 0;
    return true;
}

void nccl_build_find(char out[NCCL_BUILD_BYTES], const char *bytes, size_t n,
                     const char *version)
{
    char text[64];
    out[0] = 0;
    int length = snprintf(text, sizeof(text), "NCCL version %s", version);
    if (version[0] == 0 || length >= (int)sizeof(text)) {
        return;
    }
    const char *end = bytes + n;
    while (bytes != NULL && bytes < end) {
        const char *found =
            memmem(bytes, (size_t)(end - bytes), text, (size_t)length);
        if (found == NULL) {
            return;
        }
        bytes = found + length;
        /* 2.28.9 is not the beginning of 2.28.91. */
        bool is_whole = bytes == end || !isdigit((unsigned char)*bytes);
        if (is_whole && take(out, bytes, (size_t)(end - bytes))) {
            return;
        }
    }
}

/* ---- the file ----------------------------------------------------------- */

static bool read_at(int fd, void *out, size_t bytes, uint64_t offset)
{
    size_t done = 0;
    while (done < bytes) {
        ssize_t n =
            pread(fd, (char *)out + done, bytes - done, (off_t)(offset + done));
        if (n <= 0) {
            return false;
        }
        done += (size_t)n;
    }
    return true;
}

/* Constants: read-only data of the file that is no code. The code for GPUs
 * is that too, and a thousand times as large, but has a name of its own. */
static bool is_constants(const ElfW(Shdr) * section, const char *names,
                         size_t names_bytes)
{
    static const char wanted[] = ".rodata";
    return section->sh_type == SHT_PROGBITS &&
           section->sh_size <= CONSTANTS_BYTES_MAX &&
           section->sh_name + sizeof(wanted) - 1 < names_bytes &&
           strncmp(names + section->sh_name, wanted, sizeof(wanted) - 1) == 0;
}

static void search_section(char out[NCCL_BUILD_BYTES], int fd,
                           const ElfW(Shdr) * section, const char *version)
{
    char *bytes = malloc(section->sh_size + 1);
    if (bytes != NULL &&
        read_at(fd, bytes, section->sh_size, section->sh_offset)) {
        nccl_build_find(out, bytes, section->sh_size, version);
    }
    free(bytes);
}

static void search_sections(char out[NCCL_BUILD_BYTES], int fd,
                            const ElfW(Shdr) * sections, size_t count,
                            size_t names_index, const char *version)
{
    size_t names_bytes = sections[names_index].sh_size;
    if (names_bytes > CONSTANTS_BYTES_MAX) {
        return;
    }
    char *names = calloc(1, names_bytes + 1);
    if (names != NULL &&
        read_at(fd, names, names_bytes, sections[names_index].sh_offset)) {
        for (size_t i = 0; i < count && out[0] == 0; i++) {
            if (is_constants(&sections[i], names, names_bytes)) {
                search_section(out, fd, &sections[i], version);
            }
        }
    }
    free(names);
}

static void search_file(char out[NCCL_BUILD_BYTES], int fd, const char *version)
{
    ElfW(Ehdr) head;
    if (!read_at(fd, &head, sizeof(head), 0) ||
        memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
        head.e_shentsize != sizeof(ElfW(Shdr)) || head.e_shnum == 0 ||
        head.e_shnum > SECTIONS_MAX || head.e_shstrndx >= head.e_shnum) {
        return;
    }
    ElfW(Shdr) *sections = calloc(head.e_shnum, sizeof(*sections));
    if (sections != NULL &&
        read_at(fd, sections, head.e_shnum * sizeof(*sections), head.e_shoff)) {
        search_sections(out, fd, sections, head.e_shnum, head.e_shstrndx,
                        version);
    }
    free(sections);
}

void nccl_build_read(char out[NCCL_BUILD_BYTES], const char *path,
                     const char *version)
{
    out[0] = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        search_file(out, fd, version);
        close(fd);
    }
}
