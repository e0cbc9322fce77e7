/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules on network, RDMA and PCI of one node.
 */
#include <string.h>

#include "coordinator/checks_inside.h"

/* Azure's node health checks: more in a day and the link is bad. */
#define FLAPS_A_DAY 5.0
#define DAY_S 86400.0

/* The fact says what is wrong, or that nothing is. */
static enum check_severity expect(struct look *look, const char *key,
                                  const char *good, const char *expected,
                                  enum check_severity severity)
{
    const char *value = look_text(look, key);
    if (value == NULL) {
        return CHECK_UNKNOWN;
    }
    text_format(&look->value, "%.400s", value);
    text_format(&look->expected, "%s", expected);
    return strcmp(value, good) == 0 ? CHECK_PASS : severity;
}

/* ---- network ------------------------------------------------------------- */

/* "unset", "exact", or the names that a value without "=" matches. */
enum check_severity check_ifname(struct look *look)
{
    const char *value = look_text(look, "net.ifname_matches");
    if (value == NULL) {
        return CHECK_UNKNOWN;
    }
    if (strcmp(value, "unset") == 0) {
        return CHECK_NONE;
    }
    text_format(&look->value, "%.400s", value);
    text_format(&look->expected, "one interface, as in =%.16s", value);
    if (strcmp(value, "none") == 0) {
        text_format(&look->expected, "an interface that is there");
        return CHECK_FAIL;
    }
    return strchr(value, ' ') != NULL ? CHECK_WARN : CHECK_PASS;
}

enum check_severity check_subnet(struct look *look)
{
    return expect(look, "net.shared_subnet", "none",
                  "one interface in each subnet", CHECK_WARN);
}

static bool is_loopback(const char *address)
{
    return strncmp(address, "127.", 4) == 0 || strcmp(address, "::1") == 0;
}

/* Any loopback address may be the one that a program takes. */
static bool has_loopback(const char *addresses)
{
    bool found = false;
    for (const char *at = addresses; at != NULL; at = strchr(at, ' ')) {
        at += *at == ' ';
        char one[64];
        size_t n = strcspn(at, " ");
        n = n < sizeof(one) ? n : sizeof(one) - 1;
        memcpy(one, at, n);
        one[n] = 0;
        found = found || is_loopback(one);
    }
    return found;
}

enum check_severity check_own_name(struct look *look)
{
    const char *addresses = look_text(look, "net.resolves");
    if (addresses == NULL) {
        return CHECK_UNKNOWN;
    }
    const Gpul__Fact *name = look_fact(look->survey, "net.hostname");
    text_format(&look->expected, "an address that others reach");
    text_format(&look->value, "%.100s for \"%.100s\"", addresses,
                name != NULL ? name->value : "");
    return strcmp(addresses, "none") == 0 || has_loopback(addresses)
               ? CHECK_WARN
               : CHECK_PASS;
}

/* A name of another machine is found here, not by who dials it. */
enum check_severity check_own_address(struct look *look)
{
    const char *value = look_text(look, "net.resolves_to_itself");
    if (value != NULL && strcmp(value, "none") == 0) {
        return CHECK_NONE; /* it means nothing at all, see NET-120 */
    }
    return expect(look, "net.resolves_to_itself", "yes",
                  "an address of its own", CHECK_WARN);
}

/* ---- PCI ----------------------------------------------------------------- */

static bool is_bare_metal(const struct look *look, bool *is_known)
{
    const Gpul__Fact *fact = look_fact(look->survey, "os.virtual");
    *is_known = fact != NULL && fact->unknown[0] == 0;
    return *is_known && strcmp(fact->value, "none") == 0;
}

/* In a virtual machine both belong to the host, and must stay on. */
static enum check_severity expect_on_metal(struct look *look, const char *key,
                                           const char *bad,
                                           const char *expected)
{
    bool is_known;
    bool is_metal = is_bare_metal(look, &is_known);
    if (is_known && !is_metal) {
        return CHECK_NONE;
    }
    const char *value = look_text(look, key);
    if (value == NULL || !is_known) {
        if (value != NULL) {
            look_text(look, "os.virtual"); /* for the reason */
        }
        return CHECK_UNKNOWN;
    }
    text_format(&look->value, "%.400s", value);
    text_format(&look->expected, "%s", expected);
    return strncmp(value, bad, strlen(bad)) == 0 ? CHECK_WARN : CHECK_PASS;
}

enum check_severity check_acs(struct look *look)
{
    return expect_on_metal(look, "pci.acs", "on", "ACS off on its bridges");
}

enum check_severity check_iommu(struct look *look)
{
    return expect_on_metal(look, "pci.iommu", "translated",
                           "iommu off, or iommu=pt");
}

enum check_severity check_pcie_links(struct look *look)
{
    return expect(look, "pci.narrow", "none", "the width that both ends have",
                  CHECK_WARN);
}

/* ---- RDMA ---------------------------------------------------------------- */

enum check_severity check_gpudirect(struct look *look)
{
    double ports, gpus;
    if (!look_number(look, &ports, "rdma.ports") ||
        !look_number(look, &gpus, "nvidia.count")) {
        return CHECK_UNKNOWN;
    }
    if (ports == 0 || gpus == 0) {
        return CHECK_NONE;
    }
    const char *value = look_text(look, "rdma.gpudirect");
    if (value == NULL) {
        return CHECK_UNKNOWN;
    }
    text_format(&look->value, "neither nvidia_peermem nor dma-buf");
    text_format(&look->expected, "either");
    return strcmp(value, "none") == 0 ? CHECK_WARN : CHECK_PASS;
}

enum check_severity check_rdma_down(struct look *look)
{
    double ports;
    if (!look_number(look, &ports, "rdma.ports")) {
        return CHECK_UNKNOWN;
    }
    return ports == 0 ? CHECK_NONE
                      : expect(look, "rdma.down", "none", "all ports active",
                               CHECK_WARN);
}

/* The count is since the driver came up, which is not before the boot. */
enum check_severity check_flaps(struct look *look)
{
    double ports, downs, uptime;
    if (!look_number(look, &ports, "rdma.ports")) {
        return CHECK_UNKNOWN;
    }
    if (ports == 0) {
        return CHECK_NONE;
    }
    if (!look_number(look, &downs, "rdma.link_downed") ||
        !look_number(look, &uptime, "os.uptime")) {
        return CHECK_UNKNOWN;
    }
    double days = uptime > DAY_S ? uptime / DAY_S : 1;
    text_format(&look->value, "%.0f losses of a link in %.1f days", downs,
                uptime / DAY_S);
    text_format(&look->expected, "5 a day at most");
    return downs / days > FLAPS_A_DAY ? CHECK_WARN : CHECK_PASS;
}

/* NCCL_IB_HCA without "=" takes mlx5_10 for mlx5_1, too. */
enum check_severity check_hca(struct look *look)
{
    const char *value = look_text(look, "rdma.hca_matches");
    if (value == NULL) {
        return CHECK_UNKNOWN;
    }
    if (strcmp(value, "unset") == 0) {
        return CHECK_NONE;
    }
    text_format(&look->value, "%.400s", value);
    text_format(&look->expected, "as in NCCL_IB_HCA==mlx5_1");
    return strcmp(value, "as written") == 0 ? CHECK_PASS : CHECK_WARN;
}
