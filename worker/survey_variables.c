/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/survey_variables.h"

#include <string.h>
#include <strings.h>

/* Libraries of training, and what decides which files are loaded. */
static const char *const beginnings[] = {
    "NCCL_",  "RCCL_",     "CUDA_", "CUBLAS_", "UCX_",    "UCC_",
    "FI_",    "OMPI_MCA_", "GLOO_", "OMP_",    "KMP_",    "MKL_",
    "TORCH_", "PYTORCH_",  "TF_",   "XLA_",    "JAX_",    "HOROVOD_",
    "HSA_",   "ROCR_",     "HIP_",  "NVIDIA_", "TRITON_",
};
static const char *const names[] = {
    "LD_LIBRARY_PATH", "LD_PRELOAD",  "PYTHONPATH",
    "PYTHONHOME",      "VIRTUAL_ENV", "CONDA_PREFIX",
};

/* Of one node, by intention. */
static const char *const own[] = {
    "NCCL_SOCKET_IFNAME",  "NCCL_HOSTID",          "NCCL_TOPO_FILE",
    "NCCL_DEBUG_FILE",     "GLOO_SOCKET_IFNAME",   "CUDA_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES",
    "TF_CONFIG",           "JAX_PROCESS_ID",       "JAX_LOCAL_DEVICE_IDS",
    "HOROVOD_RANK",        "HOROVOD_LOCAL_RANK",   "HOROVOD_CROSS_RANK",
    "HOROVOD_HOSTNAME",    "HOROVOD_GLOO_IFACE",
};

static const char *const secrets[] = {"TOKEN", "SECRET", "KEY", "PASSWORD",
                                      "CREDENTIAL"};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static bool is_among(const char *name, size_t n, const char *const *list,
                     size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strlen(list[i]) == n && memcmp(list[i], name, n) == 0) {
            return true;
        }
    }
    return false;
}

bool survey_compares(const char *name, size_t n)
{
    if (is_among(name, n, own, COUNT(own))) {
        return false;
    }
    for (size_t i = 0; i < COUNT(beginnings); i++) {
        size_t bytes = strlen(beginnings[i]);
        if (n > bytes && memcmp(name, beginnings[i], bytes) == 0) {
            return true;
        }
    }
    return is_among(name, n, names, COUNT(names));
}

bool survey_is_secret(const char *name, size_t n)
{
    for (size_t i = 0; i < COUNT(secrets); i++) {
        size_t bytes = strlen(secrets[i]);
        for (size_t at = 0; at + bytes <= n; at++) {
            if (strncasecmp(name + at, secrets[i], bytes) == 0) {
                return true;
            }
        }
    }
    return false;
}
