/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/manifest.h"

#include <string.h>

static const struct {
    enum manifest_kind kind;
    const char *name;
    int (*write)(struct gpul_buf *out, const struct manifest *m,
                 struct gpul_error *err);
} kinds[] = {
    {MANIFEST_KUBERNETES, "kubernetes", manifest_kubernetes},
    {MANIFEST_SLURM, "slurm", manifest_slurm},
    {MANIFEST_COMPOSE, "compose", manifest_compose},
    {MANIFEST_TERRAFORM, "terraform", manifest_terraform},
};
enum { KIND_COUNT = sizeof(kinds) / sizeof(kinds[0]) };

const char *manifest_kind_name(enum manifest_kind kind)
{
    return kinds[kind - 1].name;
}

enum manifest_kind manifest_kind_find(const char *name)
{
    for (size_t i = 0; i < KIND_COUNT; i++) {
        if (strcmp(name, kinds[i].name) == 0) {
            return kinds[i].kind;
        }
    }
    return 0;
}

enum { LABEL_BYTES_MAX = 63, SUBDOMAIN_BYTES_MAX = 253 };

/* The first n bytes, of RFC 1123. */
static bool is_label(const char *text, size_t n)
{
    static const char all[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
    return n > 0 && n <= LABEL_BYTES_MAX && strspn(text, all) >= n &&
           text[0] != '-' && text[n - 1] != '-';
}

bool manifest_name_is_valid(const char *name)
{
    size_t n = strlen(name);
    return n <= MANIFEST_NAME_BYTES_MAX && is_label(name, n) &&
           (name[0] < '0' || name[0] > '9');
}

bool manifest_namespace_is_valid(const char *name)
{
    return is_label(name, strlen(name));
}

bool manifest_secret_is_valid(const char *name)
{
    bool is_valid = strlen(name) <= SUBDOMAIN_BYTES_MAX;
    for (; is_valid; name++) {
        size_t n = strcspn(name, ".");
        is_valid = is_label(name, n);
        name += n;
        if (*name == '\0') {
            break;
        }
    }
    return is_valid;
}

int manifest_write(struct gpul_buf *out, const struct manifest *m,
                   struct gpul_error *err)
{
    int rc = kinds[m->kind - 1].write(out, m, err);
    if (rc == 0 && out->is_failed) {
        rc = gpul_fail(err, GPUL_ELIMIT, "the file would be too long");
    }
    return rc;
}
