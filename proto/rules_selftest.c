/* SPDX-License-Identifier: Apache-2.0
 *
 * The rules of the self-test's messages.
 */
#include "proto/rule_words.h"

static const struct gpul_field_rule sweep_fields[] = {
    ANY64("bytes_min"),
    ANY64("bytes_max"),
    ANY32("factor"),
    ANY32("iterations"),
    ANY32("warmup"),
    ANY32("check"),
    NUMBER("busbw_min_gbps", 0, UINT32_MAX),
};
BODY(sweep, NULL);

static const struct gpul_field_rule self_test_fields[] = {
    CHOICE("level", 0),       ANY32("listen_deadline_ms"),
    ANY32("run_deadline_ms"), CHOICE("backend", 0),
    PATH("nccl_library"),     MESSAGE("sweep", sweep_rule),
};
SHARED_BODY(self_test, gpul_check_self_test);

static const struct gpul_field_rule probe_start_fields[] = {
    CHOICE("level", 1), /* OFF starts no probe */
    NODE_RANK("node_rank"),
    NODE_COUNT("node_count"),
    ANY64("token"),
    ADDRESS("address"),
    NUMBER("deadline_ms", 1, UINT32_MAX),
    CHOICE("backend", 0),
    PATH("nccl_library"),
    OPTIONAL_MESSAGE("sweep", sweep_rule),
    NODE_NAME("left_name", 0),
    NODE_NAME("right_name", 0),
};
SHARED_BODY(probe_start, gpul_check_probe_start);

static const struct gpul_field_rule probe_listening_fields[] = {
    ADDRESS("address"),
    PORT("port"),
};
SHARED_BODY(probe_listening, NULL);

static const struct gpul_field_rule probe_connect_fields[] = {
    ADDRESS("address"),
    PORT("port"),
    NUMBER("deadline_ms", 1, UINT32_MAX),
};
SHARED_BODY(probe_connect, NULL);

/* What a row of one probe and one of all begin with. */
/* clang-format off */
#define MEASURED                                                               \
    NUMBER("bytes", 1, UINT64_MAX),                                            \
    NUMBER("count", 1, UINT64_MAX),                                            \
    NUMBER("iterations", 1, UINT32_MAX),                                       \
    ANY64("min_ns"),                                                           \
    ANY64("median_ns"),                                                        \
    ANY64("max_ns")
/* clang-format on */

static const struct gpul_field_rule probe_row_fields[] = {
    MEASURED,
    ANY64("mean_ns"),
    ANY64("wrong_elements"),
    CHOICE("collective", 0),
    CHOICE("scope", 0),
};
BODY(probe_row, NULL);

static const struct gpul_field_rule probe_result_fields[] = {
    MESSAGES("rows", 0, GPUL_PROBE_ROWS_MAX, probe_row_rule),
    SENTENCE("error"),
    STRING("phase", NAME, 0, GPUL_TOKEN_BYTES_MAX),
    ANY64("wrong_elements"),
    ANY64("first_wrong_offset"),
    ANY64("first_wrong_bytes"),
    RANK("probe_rank"),
    STRING("device_uuid", LINE, 0, GPUL_DEVICE_UUID_BYTES_MAX),
    SENTENCE("library_error"),
    FLAG("is_simulated"),
    CHOICE("first_wrong_collective", 0),
    NUMBER("first_wrong_bit", 0, 63),
    FLAG("is_remote"),
    CHOICE("first_wrong_scope", 0),
};
SHARED_BODY(probe_result, NULL);

/* ---- on GPUs ------------------------------------------------------------ */

static const struct gpul_field_rule library_fields[] = {
    PATH("path"),
    VERSION("version"),
    STRING("build_id", LINE, 0, GPUL_BUILD_ID_BYTES_MAX),
    ANY32("version_code"),
    SENTENCE("error"),
    SENTENCE("passed_over"),
};
BODY(library, NULL);

static const struct gpul_field_rule device_fields[] = {
    NUMBER("index", 0, GPUL_DEVICES_MAX - 1),
    STRING("uuid", LINE, 0, GPUL_DEVICE_UUID_BYTES_MAX),
    STRING("bus_id", LINE, 0, GPUL_TOKEN_BYTES_MAX),
    STRING("model", LINE, 0, GPUL_DEVICE_MODEL_BYTES_MAX),
    ANY64("memory_bytes"),
    ANY64("memory_used_bytes"),
    LIST("findings", LINE, 0, GPUL_FINDINGS_MAX, 1, GPUL_FINDING_BYTES_MAX),
    NUMBER("link_gbps", 0, UINT32_MAX),
    CHOICE("link_kind", 0),
    NUMBER("pcie_gbps", 0, UINT32_MAX),
    CHOICE("ecc", 0),
    CHOICE("mig", 0),
};
BODY(device, NULL);

static const struct gpul_field_rule nic_fields[] = {
    STRING("name", LINE, 1, GPUL_NIC_NAME_BYTES_MAX),
    CHOICE("kind", 1),
    NUMBER("gbits", 0, UINT32_MAX),
    FLAG("is_down"),
};
BODY(nic, NULL);

static const struct gpul_field_rule probe_facts_fields[] = {
    MESSAGE("nccl", library_rule),
    MESSAGE("cuda", library_rule),
    MESSAGE("nvml", library_rule),
    MESSAGES("devices", 0, GPUL_DEVICES_MAX, device_rule),
    SENTENCE("error"),
    FLAG("is_simulated"),
    LIST("settings", LINE, 0, GPUL_SETTINGS_MAX, 1, GPUL_FINDING_BYTES_MAX),
    FLAG("has_scalable_init"),
    FLAG("has_comm_split"),
    MESSAGES("nics", 0, GPUL_NICS_MAX, nic_rule),
    VERSION("driver_version"),
    STRING("refused_device", LINE, 0, GPUL_DEVICE_UUID_BYTES_MAX),
};
SHARED_BODY(probe_facts, NULL);

static const struct gpul_field_rule probe_begin_fields[] = {
    RANK("first_rank"),
    NUMBER("rank_count", 1, GPUL_DEVICES_MAX),
    NUMBER("world_size", 1, GPUL_RANKS_MAX),
    NUMBER("id_count", 1, GPUL_UNIQUE_IDS_MAX),
    MESSAGE("self_test", self_test_rule),
    STRING("device_uuid", LINE, 0, GPUL_DEVICE_UUID_BYTES_MAX),
    NUMBER("device_index", 0, GPUL_DEVICES_MAX - 1),
    NUMBER("abort_deadline_ms", 1, UINT32_MAX),
    NODE_COUNT("node_count"),
    NUMBER("ranks_per_node", 0, GPUL_DEVICES_MAX),
    STRING("interface", NAME, 0, GPUL_INTERFACE_BYTES_MAX),
    PATH("debug_file"),
    NUMBER("node_rank_count", 0, GPUL_DEVICES_MAX),
    RANK("node_first_rank"),
};
SHARED_BODY(probe_begin, gpul_check_probe_begin);

static const struct gpul_field_rule probe_id_fields[] = {
    NUMBER("index", 0, GPUL_UNIQUE_IDS_MAX - 1),
    STRING("id", DATA, GPUL_UNIQUE_ID_BYTES, GPUL_UNIQUE_ID_BYTES),
    STRING("address", LINE, 0, GPUL_ADDRESS_BYTES_MAX),
};
SHARED_BODY(probe_id, NULL);

static const struct gpul_field_rule probe_ids_fields[] = {
    LIST("ids", DATA, 1, GPUL_UNIQUE_IDS_MAX, GPUL_UNIQUE_ID_BYTES,
         GPUL_UNIQUE_ID_BYTES),
};
SHARED_BODY(probe_ids, NULL);

static const struct gpul_field_rule probe_phase_fields[] = {
    RANK("probe_rank"),
    CHOICE("phase", 0),
    SENTENCE("text"),
    CHOICE("state", 0),
    STRING("call", LINE, 0, GPUL_CALL_BYTES_MAX),
    ANY32("since_ms"),
    ANY32("progress"),
    ANY32("stage"),
};
SHARED_BODY(probe_phase, NULL);

/* ---- for the front end -------------------------------------------------- */

static const struct gpul_field_rule self_test_row_fields[] = {
    MEASURED,
    ANY64("algbw_gbps"),
    ANY64("busbw_gbps"),
    ANY64("wrong_elements"),
    CHOICE("collective", 0),
    ANY64("ceiling_gbps"),
    ANY64("wire_gbps"),
    RANK("slowest_rank"),
    CHOICE("scope", 0),
    NUMBER("ranks", 0, GPUL_RANKS_MAX),
    CHOICE("ceiling_kind", 0),
};
SHARED_BODY(self_test_row, NULL);
