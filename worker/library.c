/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "worker/nccl_api.h"

enum { NOTE_NAME_BYTES = sizeof("GNU") };

/* ---- the build ID ------------------------------------------------------- */

struct build_id_search {
    ElfW(Addr) base;
    const char *name;
    char *out;
};

static void write_hex(char *out, const uint8_t *bytes, size_t n)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < n && 2 * i + 2 < LIBRARY_BUILD_ID_BYTES; i++) {
        out[2 * i] = digits[bytes[i] >> 4];
        out[2 * i + 1] = digits[bytes[i] & 0xf];
        out[2 * i + 2] = 0;
    }
}

static size_t align_up(size_t bytes, size_t alignment)
{
    return (bytes + alignment - 1) & ~(alignment - 1);
}

/* Look through the notes of one segment; true when the ID was found. Each
 * note is a header, a name and a description, the last two padded. */
static bool read_notes(char *out, const uint8_t *notes, size_t bytes,
                       size_t alignment)
{
    ElfW(Nhdr) head;
    while (bytes >= sizeof(head)) {
        memcpy(&head, notes, sizeof(head));
        size_t name_bytes = align_up(head.n_namesz, alignment);
        size_t whole =
            sizeof(head) + name_bytes + align_up(head.n_descsz, alignment);
        if (whole > bytes) {
            return false;
        }
        const uint8_t *name = notes + sizeof(head);
        if (head.n_type == NT_GNU_BUILD_ID &&
            head.n_namesz == NOTE_NAME_BYTES &&
            memcmp(name, "GNU", NOTE_NAME_BYTES) == 0) {
            write_hex(out, name + name_bytes, head.n_descsz);
            return true;
        }
        notes += whole;
        bytes -= whole;
    }
    return false;
}

static int visit_object(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    struct build_id_search *search = context;
    if (info->dlpi_addr != search->base ||
        strcmp(info->dlpi_name, search->name) != 0) {
        return 0;
    }
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        /* The loader has mapped it there: that is what a segment is. */
        const uint8_t *notes =
            (const uint8_t *)(uintptr_t)(info->dlpi_addr + segment->p_vaddr);
        size_t alignment = segment->p_align == 8 ? 8 : 4;
        if (segment->p_type == PT_NOTE &&
            read_notes(search->out, notes, segment->p_memsz, alignment)) {
            break;
        }
    }
    return 1;
}

/* Which file the dynamic linker took, and its build ID. */
static void identify(struct library *lib)
{
    struct link_map *map = NULL;
    if (dlinfo(lib->handle, RTLD_DI_LINKMAP, &map) != 0) {
        return;
    }
    if (realpath(map->l_name, lib->path) == NULL) {
        snprintf(lib->path, sizeof(lib->path), "%s", map->l_name);
    }
    struct build_id_search search = {map->l_addr, map->l_name, lib->build_id};
    dl_iterate_phdr(visit_object, &search);
    lib->is_simulated = dlsym(lib->handle, GPU_DOUBLE_MARKER) != NULL;
}

/* ---- opening ------------------------------------------------------------ */

static int fill_api(const struct library *lib, void *api,
                    const struct library_table *table, struct gpul_error *err)
{
    for (size_t i = 0; i < table->symbol_count; i++) {
        const struct library_symbol *symbol = &table->symbols[i];
        void *function = dlsym(lib->handle, symbol->name);
        if (function == NULL && symbol->is_required) {
            return gpul_fail(err, GPUL_EINVAL,
                             "%s: %s has no symbol %s: too old or damaged",
                             table->title, lib->path, symbol->name);
        }
        memcpy((char *)api + symbol->offset, &function, sizeof(function));
    }
    return 0;
}

/* dlerror begins with the name of the file. */
static const char *open_error(void)
{
    const char *text = dlerror();
    return text != NULL ? text : "unknown error of the dynamic linker";
}

/* The kind of file that this machine's programs load: like this one. */
static bool read_own_header(ElfW(Ehdr) * own)
{
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    bool is_read =
        fd >= 0 && read(fd, own, sizeof(*own)) == (ssize_t)sizeof(*own);
    if (fd >= 0) {
        close(fd);
    }
    return is_read;
}

/* glibc, elf/dl-load.c, open_verify: a file of the other class or for another
 * machine is not an error of a search, it goes on with the next folder. NULL:
 * it is for dlopen to say what the file is. */
static const char *foreign_kind(int fd)
{
    ElfW(Ehdr) it = {0};
    ElfW(Ehdr) own;
    if (read(fd, &it, sizeof(it)) < (ssize_t)sizeof(it) ||
        memcmp(it.e_ident, ELFMAG, SELFMAG) != 0 || !read_own_header(&own)) {
        return NULL;
    }
    if (it.e_ident[EI_CLASS] != own.e_ident[EI_CLASS]) {
        return own.e_ident[EI_CLASS] == ELFCLASS64 ? "not a 64-bit library"
                                                   : "not a 32-bit library";
    }
    bool is_readable = it.e_ident[EI_DATA] == own.e_ident[EI_DATA];
    return is_readable && it.e_machine != own.e_machine
               ? "a library for another machine"
               : NULL;
}

/* Why a search goes on past this file, or NULL. Nor is it an error there
 * when a file may not be read (dl-load.c, open_path). */
static const char *why_next(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return errno == ENOENT || errno == ENOTDIR ? "no such file"
               : errno == EACCES                   ? "permission denied"
                                                   : NULL;
    }
    const char *why = foreign_kind(fd);
    close(fd);
    return why;
}

/* The first one by name: training will pass it over too, but somebody has put
 * it there for something. */
static void note_passed(struct library *lib, const char *path, const char *why)
{
    if (access(path, F_OK) != 0 || lib->passed_over[0] != 0) {
        return;
    }
    snprintf(lib->passed_over, sizeof(lib->passed_over), "%.200s (%s)", path,
             why);
}

static int open_first(struct library *lib, const struct library_table *table,
                      const char *const *candidates, size_t count,
                      struct gpul_error *err)
{
    char reason[GPUL_ERROR_TEXT_BYTES] = "no place to look at";
    for (size_t i = 0; i < count; i++) {
        bool is_file = strchr(candidates[i], '/') != NULL;
        const char *why = is_file ? why_next(candidates[i]) : NULL;
        bool is_absent = why != NULL && access(candidates[i], F_OK) != 0;
        if (is_absent || (why != NULL && count > 1)) {
            note_passed(lib, candidates[i], why);
            snprintf(reason, sizeof(reason), "%s: %s", candidates[i], why);
            continue;
        }
        lib->handle = dlopen(candidates[i], RTLD_NOW | RTLD_LOCAL);
        if (lib->handle != NULL) {
            identify(lib);
            return 0;
        }
        snprintf(reason, sizeof(reason), "%s", open_error());
        if (is_file) {
            return gpul_fail(err, GPUL_EINVAL, "%s: %s", table->title, reason);
        }
    }
    return gpul_fail(err, GPUL_ENOTFOUND, "%s: %s%s%s; %s", table->title,
                     reason, lib->passed_over[0] != 0 ? "; passed over: " : "",
                     lib->passed_over, table->remedy);
}

int library_open(struct library *out, void *api,
                 const struct library_table *table,
                 const char *const *candidates, size_t count,
                 struct gpul_error *err)
{
    *out = (struct library){0};
    memset(api, 0, table->api_bytes);
    int rc = open_first(out, table, candidates, count, err);
    if (rc == 0) {
        rc = fill_api(out, api, table, err);
    }
    if (rc != 0) {
        library_close(out);
        memset(api, 0, table->api_bytes);
    }
    return rc;
}

void library_close(struct library *lib)
{
    if (lib->handle != NULL) {
        dlclose(lib->handle);
    }
    *lib = (struct library){0};
}

bool library_is_stub(const char *path)
{
    return strstr(path, "/stubs/") != NULL;
}
