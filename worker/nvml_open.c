/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/nvml_open.h"

#include "worker/gpu_symbols.h"
#include "worker/library_find.h"

int nvml_open(struct library *lib, struct nvml_api *api,
              const char *const *environment, struct gpul_error *err)
{
    const struct library_search search = {
        .names = (const char *const[]){"libnvidia-ml.so.1", NULL},
        .environment = environment,
    };
    struct library_candidates candidates;
    int rc = library_find(&candidates, &search, NULL, err);
    if (rc != 0) {
        return rc;
    }
    rc = library_open(lib, api, gpu_symbols_nvml(),
                      (const char *const *)candidates.paths, candidates.count,
                      err);
    library_candidates_release(&candidates);
    return rc;
}
