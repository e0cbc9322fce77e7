/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/variables.h"

const char *variables_get(const struct variables *v, const char *name)
{
    const char *value = v->getenv(v->arg, name);
    return value != NULL && value[0] != '\0' ? value : NULL;
}
