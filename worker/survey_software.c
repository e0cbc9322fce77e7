/* SPDX-License-Identifier: Apache-2.0
 *
 * Files that a program would load or run: "lib", "python" and "command".
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/spawn.h"
#include "worker/library_find.h"
#include "worker/survey_themes.h"

enum { NOTE_BYTES_MAX = 4096, BUILD_ID_BYTES_MAX = 20, HEADERS_MAX = 64 };

/* ---- build IDs ----------------------------------------------------------- */

/* Name and content of a note are padded to four bytes. */
static size_t padded(size_t n)
{
    return (n + 3) & ~(size_t)3;
}

static bool find_build_id(char *out, const unsigned char *notes, size_t bytes)
{
    for (size_t at = 0; at + sizeof(Elf64_Nhdr) <= bytes;) {
        Elf64_Nhdr note;
        memcpy(&note, notes + at, sizeof(note));
        size_t name = at + sizeof(note);
        size_t content = name + padded(note.n_namesz);
        if (note.n_namesz > bytes || note.n_descsz > bytes ||
            content + note.n_descsz > bytes) {
            return false;
        }
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
            memcmp(notes + name, "GNU", 4) == 0 &&
            note.n_descsz <= BUILD_ID_BYTES_MAX) {
            for (size_t i = 0; i < note.n_descsz; i++) {
                snprintf(out + 2 * i, 3, "%02x", notes[content + i]);
            }
            return true;
        }
        at = content + padded(note.n_descsz);
    }
    return false;
}

static bool read_at(int fd, void *out, size_t bytes, uint64_t at)
{
    return pread(fd, out, bytes, (off_t)at) == (ssize_t)bytes;
}

/* Of a 64-bit ELF file; "" where it has none. */
static void read_build_id(char out[2 * BUILD_ID_BYTES_MAX + 1], int fd)
{
    Elf64_Ehdr file;
    out[0] = 0;
    if (!read_at(fd, &file, sizeof(file), 0) ||
        memcmp(file.e_ident, ELFMAG, SELFMAG) != 0 ||
        file.e_ident[EI_CLASS] != ELFCLASS64) {
        return;
    }
    for (unsigned i = 0; i < file.e_phnum && i < HEADERS_MAX; i++) {
        Elf64_Phdr header;
        unsigned char notes[NOTE_BYTES_MAX];
        if (read_at(fd, &header, sizeof(header),
                    file.e_phoff + i * sizeof(header)) &&
            header.p_type == PT_NOTE && header.p_filesz <= sizeof(notes) &&
            read_at(fd, notes, header.p_filesz, header.p_offset) &&
            find_build_id(out, notes, header.p_filesz)) {
            return;
        }
    }
}

/* ---- libraries ----------------------------------------------------------- */

/* Returns whether the file is there. */
static bool say_library(struct survey *s, const char *key, const char *path)
{
    struct stat status;
    char id[2 * BUILD_ID_BYTES_MAX + 1];
    int fd = strchr(path, '/') != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    bool is_there = fd >= 0 && fstat(fd, &status) == 0;
    if (is_there) {
        read_build_id(id, fd);
        survey_say(s, key, "%s (%lld bytes%s%s)", path,
                   (long long)status.st_size, id[0] != 0 ? ", build " : "", id);
    }
    if (fd >= 0) {
        close(fd);
    }
    return is_there;
}

/* The first one that a program would find by its path. */
static void find_library(struct survey *s, const struct survey_request *r,
                         const char *key, const char *const *names,
                         const char *wheel)
{
    const struct library_search search = {
        .names = names,
        .wheel = wheel,
        .environment = r->environment,
    };
    struct library_candidates candidates;
    struct gpul_error err = {0};
    if (library_find(&candidates, &search, r->command, &err) != 0) {
        survey_unknown(s, key, "%s", err.text);
        return;
    }
    bool is_said = false;
    for (size_t i = 0; i < candidates.count && !is_said; i++) {
        is_said = say_library(s, key, candidates.paths[i]);
    }
    if (!is_said) {
        survey_say(s, key, "none");
    }
    library_candidates_release(&candidates);
}

static void survey_libraries(struct survey *s, const struct survey_request *r)
{
    static const struct {
        const char *key;
        const char *names[4];
        const char *wheel;
    } libraries[] = {
        {"lib.libnccl", {"libnccl.so.2"}, "nvidia/nccl/lib"},
        {"lib.libcudart",
         {"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"},
         "nvidia/cuda_runtime/lib"},
        {"lib.libcudnn",
         {"libcudnn.so.9", "libcudnn.so.8"},
         "nvidia/cudnn/lib"},
        {"lib.libtorch", {"libtorch_cuda.so", "libtorch.so"}, "torch/lib"},
    };
    for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++) {
        find_library(s, r, libraries[i].key, libraries[i].names,
                     libraries[i].wheel);
    }
}

/* ---- programs ------------------------------------------------------------ */

static void say_python(struct survey *s, const struct survey_request *r)
{
    static const char *const names[] = {"python", "python3"};
    char real[PATH_MAX];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char *path;
        int why;
        if (gpul_spawn_find(&path, &why, names[i], survey_variable(r, "PATH"),
                            NULL, NULL) == 0) {
            bool is_real = realpath(path, real) != NULL;
            survey_say(s, "python.path", "%s", is_real ? real : path);
            free(path);
            return;
        }
    }
    survey_say(s, "python.path", "none");
}

/* 0, or the errno of an attempt to execute it. */
static int try_program(const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0 || access(path, X_OK) != 0) {
        return errno;
    }
    return S_ISREG(status.st_mode) ? 0 : EACCES;
}

static void say_command(struct survey *s, const struct survey_request *r)
{
    char *path = NULL;
    int why = 0;
    if (r->command == NULL) {
        return;
    }
    gpul_spawn_find(&path, &why, r->command, survey_variable(r, "PATH"),
                    r->working_directory, NULL);
    if (path != NULL) {
        why = try_program(path);
    }
    if (path == NULL || why != 0) {
        survey_say(s, "command.path", "missing: %s: %s", r->command,
                   strerror(why));
    } else {
        survey_say(s, "command.path", "%s", path);
    }
    free(path);
}

void survey_software(struct survey *s, const struct survey_request *r)
{
    say_command(s, r);
    say_python(s, r);
    survey_libraries(s, r);
}
