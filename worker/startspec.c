/* SPDX-License-Identifier: Apache-2.0
 *
 * The encoded form, for one machine and one program image, so in the order
 * of its bytes:
 *
 *   struct head | 8-byte offsets: arguments, 0, environment, 0 | strings
 *
 * An offset counts from the start of the head; 0 is none. The last byte is a
 * NUL, so a string that begins within the strings ends there too. Offsets and
 * pointers are equally large, so the one becomes the other in its place.
 */
#include "worker/startspec.h"

#include <assert.h>
#include <string.h>

_Static_assert(sizeof(char *) == sizeof(uint64_t), "offsets become pointers");

#define MAGIC 0x31746e6c75707067u /* "gppulnt1" */

enum flags {
    FLAG_CPUS = 1,
    FLAG_NODES = 2,
    FLAG_LIMITS = 4,
    FLAGS_ALL = FLAG_CPUS | FLAG_NODES | FLAG_LIMITS,
};

struct head {
    uint64_t magic;
    uint64_t bytes; /* of all */
    uint64_t flags;
    uint64_t arguments; /* how many */
    uint64_t variables;
    uint64_t path; /* offset */
    uint64_t working_directory;
    uint64_t cpus[STARTSPEC_CPU_WORDS];
    uint64_t nodes[STARTSPEC_NODE_WORDS];
};

/* ---- writing ------------------------------------------------------------- */

struct sizes {
    size_t arguments;
    size_t variables;
    size_t strings; /* bytes */
};

static size_t measure_list(char *const *list, size_t *bytes)
{
    size_t count = 0;
    for (; list[count] != NULL; count++) {
        *bytes += strlen(list[count]) + 1;
    }
    return count;
}

static struct sizes measure(const struct startspec *spec)
{
    struct sizes s = {.strings = strlen(spec->path) + 1};
    if (spec->working_directory != NULL) {
        s.strings += strlen(spec->working_directory) + 1;
    }
    s.arguments = measure_list(spec->arguments, &s.strings);
    s.variables = measure_list(spec->environment, &s.strings);
    return s;
}

/* Where the next string goes. */
struct writer {
    uint8_t *base;
    uint8_t *offsets;
    size_t used;
};

static uint64_t write_string(struct writer *w, const char *text)
{
    size_t n = strlen(text) + 1;
    uint64_t at = w->used;
    memcpy(w->base + at, text, n);
    w->used += n;
    return at;
}

static void write_offset(struct writer *w, uint64_t offset)
{
    memcpy(w->offsets, &offset, sizeof(offset));
    w->offsets += sizeof(offset);
}

static void write_list(struct writer *w, char *const *list)
{
    for (; *list != NULL; list++) {
        write_offset(w, write_string(w, *list));
    }
    write_offset(w, 0);
}

static uint64_t flags_of(const struct startspec *spec)
{
    return (spec->has_cpus ? FLAG_CPUS : 0u) |
           (spec->has_nodes ? FLAG_NODES : 0u) |
           (spec->raises_limits ? FLAG_LIMITS : 0u);
}

int startspec_encode(struct gpul_buf *out, const struct startspec *spec,
                     struct gpul_error *err)
{
    struct sizes s = measure(spec);
    size_t table = (s.arguments + s.variables + 2) * sizeof(uint64_t);
    struct head head = {
        .magic = MAGIC,
        .bytes = sizeof(head) + table + s.strings,
        .flags = flags_of(spec),
        .arguments = s.arguments,
        .variables = s.variables,
    };
    if (head.bytes > STARTSPEC_BYTES_MAX) {
        return gpul_fail(err, GPUL_ELIMIT,
                         "the start of %s takes %zu bytes, %d at most",
                         spec->path, (size_t)head.bytes, STARTSPEC_BYTES_MAX);
    }
    memcpy(head.cpus, spec->cpus, sizeof(head.cpus));
    memcpy(head.nodes, spec->nodes, sizeof(head.nodes));
    uint8_t *base = gpul_buf_extend(out, head.bytes);
    if (base == NULL) {
        return gpul_fail(err, GPUL_ENOMEM,
                         "out of memory for the start of %s: %zu bytes",
                         spec->path, (size_t)head.bytes);
    }
    struct writer w = {base, base + sizeof(head), sizeof(head) + table};
    head.path = write_string(&w, spec->path);
    if (spec->working_directory != NULL) {
        head.working_directory = write_string(&w, spec->working_directory);
    }
    write_list(&w, spec->arguments);
    write_list(&w, spec->environment);
    assert(w.used == head.bytes);
    memcpy(base, &head, sizeof(head));
    return 0;
}

/* ---- reading ------------------------------------------------------------- */

static int refuse(struct gpul_error *err, const char *what)
{
    return gpul_fail(err, GPUL_EINVAL, "not a start specification: %s", what);
}

static int check_head(const struct head *head, size_t n, struct gpul_error *err)
{
    /* Every entry takes 8 bytes, so counts past this are nonsense and sums
     * of them could not overflow. */
    uint64_t entries_max = n / sizeof(uint64_t);
    if (head->magic != MAGIC || head->bytes != n) {
        return refuse(err, "its head");
    }
    if ((head->flags & ~(uint64_t)FLAGS_ALL) != 0) {
        return refuse(err, "its flags");
    }
    if (head->arguments == 0 || head->arguments > entries_max ||
        head->variables > entries_max) {
        return refuse(err, "its counts");
    }
    uint64_t table = (head->arguments + head->variables + 2) * sizeof(uint64_t);
    if (table > n - sizeof(*head)) {
        return refuse(err, "its counts");
    }
    return 0;
}

/* Strings lie between `first` and `end`; the byte before `end` is a NUL. */
struct strings {
    char *base;
    uint64_t first;
    uint64_t end;
};

static char *string_at(const struct strings *s, uint64_t offset)
{
    bool is_inside = offset >= s->first && offset < s->end;
    return is_inside ? s->base + offset : NULL;
}

/* Offsets become pointers; false: one of them is out of range. */
static bool point(char **list, uint64_t count, const struct strings *s)
{
    for (uint64_t i = 0; i < count; i++) {
        uint64_t offset;
        memcpy(&offset, &list[i], sizeof(offset));
        char *text = string_at(s, offset);
        if (text == NULL) {
            return false;
        }
        memcpy(&list[i], &text, sizeof(text));
    }
    list[count] = NULL;
    return true;
}

static void copy_binding(struct startspec *spec, const struct head *head)
{
    spec->has_cpus = (head->flags & FLAG_CPUS) != 0;
    spec->has_nodes = (head->flags & FLAG_NODES) != 0;
    spec->raises_limits = (head->flags & FLAG_LIMITS) != 0;
    memcpy(spec->cpus, head->cpus, sizeof(spec->cpus));
    memcpy(spec->nodes, head->nodes, sizeof(spec->nodes));
}

int startspec_decode(struct startspec *spec, void *bytes, size_t n,
                     struct gpul_error *err)
{
    struct head head;
    memset(spec, 0, sizeof(*spec));
    if (n <= sizeof(head) || n > STARTSPEC_BYTES_MAX ||
        (uintptr_t)bytes % _Alignof(char *) != 0) {
        return refuse(err, "its size or place");
    }
    memcpy(&head, bytes, sizeof(head));
    int rc = check_head(&head, n, err);
    if (rc != 0) {
        return rc;
    }
    char **lists = (char **)(void *)((char *)bytes + sizeof(head));
    uint64_t entries = head.arguments + head.variables + 2;
    struct strings s = {bytes, sizeof(head) + entries * sizeof(uint64_t), n};
    spec->arguments = lists;
    spec->environment = lists + head.arguments + 1;
    spec->path = string_at(&s, head.path);
    spec->working_directory = head.working_directory != 0
                                  ? string_at(&s, head.working_directory)
                                  : NULL;
    if (((const char *)bytes)[n - 1] != 0 || spec->path == NULL ||
        (spec->working_directory == NULL && head.working_directory != 0) ||
        !point(spec->arguments, head.arguments, &s) ||
        !point(spec->environment, head.variables, &s)) {
        return refuse(err, "a string is out of range");
    }
    copy_binding(spec, &head);
    return 0;
}
