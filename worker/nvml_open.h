/* SPDX-License-Identifier: Apache-2.0
 *
 * NVML for a process that only reads what it tells. Edge.
 */
#ifndef WORKER_NVML_OPEN_H
#define WORKER_NVML_OPEN_H

#include "worker/library.h"
#include "worker/nvml_api.h"

/* Found in `environment` (NULL-terminated) as any library is, and not yet
 * initialised. It is meant to stay open until the process ends: to close it
 * would be one more call to hang in. Errors: GPUL_ENOTFOUND (there is none),
 * GPUL_EINVAL (one that cannot be used), GPUL_ENOMEM. */
int nvml_open(struct library *lib, struct nvml_api *api,
              const char *const *environment, struct gpul_error *err);

#endif
