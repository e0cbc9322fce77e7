/* SPDX-License-Identifier: Apache-2.0
 *
 * A library with one function of NCCL, for the tests of worker/library.h:
 * every other function is missing. With IS_DOUBLE it says that it is one.
 */
#include "worker/nccl_api.h"

#define EXPORTED __attribute__((visibility("default")))

EXPORTED int ncclGetVersion(int *version);

EXPORTED int ncclGetVersion(int *version)
{
    *version = 20304;
    return NCCL_SUCCESS;
}

#ifdef IS_DOUBLE
EXPORTED extern const int gpulaunch_double;
const int gpulaunch_double = 1;
#endif
