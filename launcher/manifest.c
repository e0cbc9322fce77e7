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

bool manifest_name_is_valid(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz";
    static const char all[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
    size_t n = strlen(name);
    return n > 0 && n <= MANIFEST_NAME_BYTES_MAX && strspn(name, all) == n &&
           strspn(name, letters) > 0 && name[n - 1] != '-';
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
