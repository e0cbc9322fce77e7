/* SPDX-License-Identifier: Apache-2.0
 *
 * The rules of every message type: gpulaunch.proto once more, with bounds.
 * Those of the self-test stand in rules_selftest.c, those of the proof of
 * addresses in rules_links.c, those of trials in rules_pairs.c, those of a
 * check in rules_check.c.
 */
#include "proto/rule_words.h"

/* ---- joining ------------------------------------------------------------ */

static const struct gpul_field_rule interface_fields[] = {
    STRING("name", LINE, 1, GPUL_INTERFACE_BYTES_MAX),
    ADDRESS("address"),
    FLAG("is_loopback"),
};
BODY(interface, NULL);

static const struct gpul_field_rule facts_fields[] = {
    HOSTNAME("hostname"),
    STRING("boot_id", LINE, 0, GPUL_BOOT_ID_BYTES_MAX),
    ADDRESS("address"),
    MESSAGES("interfaces", 0, GPUL_INTERFACES_MAX, interface_rule),
    NUMBER("cores", 1, UINT32_MAX),
    ANY64("memory_bytes"),
    ANY32("gpus"),
    STRING("kernel", LINE, 0, GPUL_KERNEL_BYTES_MAX),
    ANY64("network_namespace"),
};
BODY(facts, NULL);

static const struct gpul_field_rule hello_fields[] = {
    NUMBER("protocol_min", 1, UINT32_MAX),
    NUMBER("protocol_max", 1, UINT32_MAX),
    VERSION("version"),
    STRING("job_id", NAME, 1, GPUL_JOB_ID_BYTES_MAX),
    NODE_NAME("node_name", 1),
    ANY64("instance"),
    MESSAGE("facts", facts_rule),
    ANY32("attach"),
    ANY32("held_generation"),
    ANY32("held_attempt"),
};
BODY(hello, gpul_check_hello);

static const struct gpul_field_rule welcome_fields[] = {
    NUMBER("protocol", 1, UINT32_MAX),
    VERSION("version"),
    NUMBER("heartbeat_ms", 1, UINT32_MAX),
    NUMBER("lease_ms", 1, UINT32_MAX),
};
BODY(welcome, gpul_check_welcome);

static const struct gpul_field_rule refuse_fields[] = {
    CHOICE("reason", 1),
    SENTENCE("text"),
};
BODY(refuse, NULL);

static const struct gpul_field_rule heartbeat_fields[] = {ANY64("sequence")};
BODY(heartbeat, NULL);

static const struct gpul_field_rule heartbeat_ack_fields[] = {
    ANY64("sequence"),
};
BODY(heartbeat_ack, NULL);

/* ---- the job ------------------------------------------------------------ */

static const struct gpul_field_rule command_fields[] = {
    LIST("arguments", CSTRING, 1, GPUL_ARGUMENTS_MAX, 0,
         GPUL_EXEC_STRING_BYTES_MAX),
    STRING("working_directory", CSTRING, 0, GPUL_PATH_BYTES_MAX),
};
BODY(command, NULL);

static const struct gpul_field_rule variable_fields[] = {
    STRING("name", CSTRING, 1, GPUL_EXEC_STRING_BYTES_MAX),
    STRING("value", CSTRING, 0, GPUL_EXEC_STRING_BYTES_MAX),
};
BODY(variable, gpul_check_variable);

static const struct gpul_field_rule environment_fields[] = {
    MESSAGES("user", 0, GPUL_VARIABLES_MAX, variable_rule),
    CHOICE("tf_config", 0),
    FLAG("tf_evaluator_in_cluster"),
    CHOICE("devices", 0),
    FLAG("emulates_slurm"),
    ANY64("nccl_socket_magic"),
};
BODY(environment, NULL);

static const struct gpul_field_rule input_target_fields[] = {
    FLAG("is_all"),
    RANK("rank"),
};
BODY(input_target, gpul_check_input_target);

static const struct gpul_field_rule hang_fields[] = {
    CHOICE("watch", 0),
    ANY32("limit_ms"),
    FLAG("stops_job"),
};
BODY(hang, gpul_check_hang);

static const struct gpul_field_rule role_fields[] = {
    STRING("name", NAME, 1, GPUL_TOKEN_BYTES_MAX),
    NUMBER("count", 1, GPUL_RANKS_MAX),
};
BODY(role, NULL);

static const struct gpul_field_rule job_fields[] = {
    STRING("job_id", NAME, 1, GPUL_JOB_ID_BYTES_MAX),
    CHOICE("mode", 1),
    NODE_COUNT("node_count"),
    NUMBER("ranks_per_node", 0, GPUL_RANKS_PER_NODE_MAX),
    LIST("node_names", NAME, 0, GPUL_NODES_MAX, 1, GPUL_HOSTLIST_BYTES_MAX),
    FLAG("names_are_ordered"),
    NUMBER("join_timeout_ms", 1, UINT32_MAX),
    ANY32("timeout_ms"),
    ANY32("grace_ms"),
    MESSAGE("self_test", self_test_rule),
    MESSAGE("command", command_rule),
    MESSAGE("environment", environment_rule),
    MESSAGES("roles", 0, GPUL_ROLES_MAX, role_rule),
    NUMBER("max_restarts", 0, GPUL_RESTARTS_MAX),
    ANY32("report_rank"),
    FLAG("report_all_ranks"),
    PATH("log_dir"),
    FLAG("forwards_output"),
    FLAG("keeps_logs"),
    OPTIONAL_MESSAGE("input_target", input_target_rule),
    ANY32("orphan_timeout_ms"),
    NUMBER("warning_signal", 0, GPUL_SIGNAL_MAX),
    ANY32("warning_ms"),
    CHOICE("bind", 0),
    OPTIONAL_MESSAGE("hang", hang_rule),
    STRING("interface", LINE, 0, GPUL_TEXT_BYTES_MAX),
    OPTIONAL_MESSAGE("check", check_rule),
    FLAG("wants_metrics"),
};
BODY(job, gpul_check_job);

/* ---- a generation ------------------------------------------------------- */

static const struct gpul_field_rule assign_fields[] = {
    NODE_RANK("node_rank"),
    NODE_COUNT("node_count"),
    RANK("first_rank"),
    RANK_COUNT("rank_count"),
    NUMBER("world_size", 1, GPUL_RANKS_MAX),
    ANY32("restart_count"),
    NUMBER("host_rank_count", 1, GPUL_RANKS_MAX),
    NODE_RANK("host_node_index"),
    NODE_COUNT("host_node_count"),
    NODE_COUNT("host_count"),
    LIST("avoid_ports", NUMBER, 0, GPUL_AVOID_PORTS_MAX, 1, GPUL_PORT_MAX),
};
BODY(assign, gpul_check_assign);

static const struct gpul_field_rule ready_fields[] = {
    NUMBER("port_base", 0, GPUL_PORT_MAX),
    SENTENCE("error"),
};
BODY(ready, gpul_check_ready);

static const struct gpul_field_rule roster_fields[] = {
    NODE_RANK("page"),
    NODE_COUNT("page_count"),
    NODE_RANK("first_node"),
    NUMBER("node_count", 1, GPUL_ROSTER_PAGE_NODES_MAX),
    STRING("addresses", NAME, 1, GPUL_ROSTER_ADDRESSES_BYTES_MAX),
    LIST("port_bases", NUMBER, 1, GPUL_ROSTER_PAGE_NODES_MAX, 1, GPUL_PORT_MAX),
    LIST("rank_counts", NUMBER, 1, GPUL_ROSTER_PAGE_NODES_MAX, 1,
         GPUL_RANKS_PER_NODE_MAX),
};
BODY(roster, gpul_check_roster);

/* ---- running ------------------------------------------------------------ */

static const struct gpul_field_rule launch_fields[] = {ANY32("attempt")};
BODY(launch, NULL);

static const struct gpul_field_rule evidence_fields[] = {
    STRING("tail", LINES, 0, GPUL_TAIL_BYTES_MAX),
    LIST("nccl_warnings", LINE, 0, GPUL_NCCL_WARNINGS_MAX, 1,
         GPUL_NCCL_WARNING_BYTES_MAX),
    STRING("error_file", DATA, 0, GPUL_ERROR_FILE_BYTES_MAX),
    ANY64("error_file_bytes"),
};
BODY(evidence, NULL);

static const struct gpul_field_rule exit_fields[] = {
    RANK("rank"),
    NUMBER("code", 0, 255),
    NUMBER("signal", 0, GPUL_SIGNAL_MAX),
    NUMBER("exec_errno", 0, GPUL_ERRNO_MAX),
    SENTENCE("text"),
    FLAG("is_bind_error"),
    ANY64("ran_ms"),
    PATH("log"),
    ANY32("pid"),
    CHOICE("out_of_memory", 0),
    ANY64("cpu_ms"),
    ANY64("rss_bytes"),
    OPTIONAL_MESSAGE("evidence", evidence_rule),
    FLAG("is_stopped"),
    ANY64("after_ms"),
    STRING("metric", LINE, 0, GPUL_METRIC_BYTES_MAX),
    ANY64("steps"),
    ANY64("steps_ms"),
};
BODY(exit, NULL);

static const struct gpul_field_rule exits_fields[] = {
    MESSAGES("exits", 1, GPUL_EXITS_MAX, exit_rule),
};
BODY(exits, gpul_check_exits);

static const struct gpul_field_rule stop_fields[] = {
    NUMBER("signal", 1, GPUL_SIGNAL_MAX),
    ANY32("grace_ms"),
};
BODY(stop, NULL);

static const struct gpul_field_rule idle_fields[] = {
    LIST("unclean", LINES, 0, GPUL_UNCLEAN_MAX, 1, GPUL_UNCLEAN_BYTES_MAX),
};
BODY(idle, NULL);

static const struct gpul_field_rule leave_fields[] = {
    SENTENCE("text"),
    FLAG("is_clean"),
    LIST("unclean", LINES, 0, GPUL_UNCLEAN_MAX, 1, GPUL_UNCLEAN_BYTES_MAX),
};
BODY(leave, gpul_check_leave);

static const struct gpul_field_rule finish_fields[] = {FLAG("keeps_logs")};
BODY(finish, NULL);

static const struct gpul_field_rule output_fields[] = {
    RANK("rank"),
    CHOICE("stream", 1),
    STRING("data", DATA, 1, GPUL_OUTPUT_BYTES_MAX),
    NODE_RANK("node_rank"),
};
BODY(output, NULL);

static const struct gpul_field_rule credit_fields[] = {
    NODE_RANK("node_rank"),
    NUMBER("bytes", 1, GPUL_OUTPUT_WINDOW_TOTAL_BYTES),
};
BODY(credit, NULL);

static const struct gpul_field_rule signal_fields[] = {
    NUMBER("signal", 1, GPUL_SIGNAL_MAX),
};
BODY(signal, NULL);

static const struct gpul_field_rule input_fields[] = {
    STRING("data", DATA, 0, GPUL_INPUT_BYTES_MAX),
    FLAG("is_end"),
};
BODY(input, gpul_check_input);

static const struct gpul_field_rule input_credit_fields[] = {
    NUMBER("bytes", 0, GPUL_INPUT_WINDOW_BYTES_MAX),
    FLAG("is_closed"),
};
BODY(input_credit, gpul_check_input_credit);

static const struct gpul_field_rule stall_row_fields[] = {
    RANK("rank"),
    CHOICE("kind", 1),
    ANY64("steps"),
    ANY64("silence_ms"),
    ANY64("limit_ms"),
    FLAG("is_learned"),
    STRING("state", NAME, 0, GPUL_TOKEN_BYTES_MAX),
    ANY32("threads"),
    ANY64("cpu_ms"),
    ANY32("look_ms"),
    STRING("wait_channel", LINE, 0, GPUL_WAIT_CHANNEL_BYTES_MAX),
    STRING("text", LINE, 0, GPUL_FINDING_BYTES_MAX),
};
BODY(stall_row, NULL);

static const struct gpul_field_rule stall_fields[] = {
    MESSAGES("rows", 1, GPUL_STALL_ROWS_MAX, stall_row_rule),
};
BODY(stall, NULL);

/* ---- mode ENV ----------------------------------------------------------- */

static const struct gpul_field_rule env_entry_fields[] = {
    STRING("name", CSTRING, 0, GPUL_EXEC_STRING_BYTES_MAX),
    STRING("value", CSTRING, 0, GPUL_EXEC_STRING_BYTES_MAX),
    CHOICE("action", 1),
    SENTENCE("rule"),
};
BODY(env_entry, NULL);

static const struct gpul_field_rule env_report_fields[] = {
    RANK("rank"),
    MESSAGES("entries", 0, GPUL_ENV_ENTRIES_MAX, env_entry_rule),
    FLAG("is_last"),
    STRING("cpus", NAME, 0, GPUL_CPU_LIST_BYTES_MAX),
    STRING("memory_nodes", NAME, 0, GPUL_CPU_LIST_BYTES_MAX),
};
BODY(env_report, NULL);

/* ---- front end ---------------------------------------------------------- */

static const struct gpul_field_rule member_fields[] = {
    NODE_NAME("node_name", 1),
    HOSTNAME("hostname"),
    ADDRESS("address"),
    NODE_RANK("node_rank"),
    RANK("first_rank"),
    RANK_COUNT("rank_count"),
    ANY32("gpus"),
    STRING("interface", LINE, 0, GPUL_INTERFACE_BYTES_MAX),
    LIST("rejected", LINE, 0, GPUL_REJECTED_MAX, 1, GPUL_REJECTED_BYTES_MAX),
};
BODY(member, NULL);

static const struct gpul_field_rule metric_fields[] = {
    RANK("rank"),
    STRING("text", LINE, 0, GPUL_METRIC_BYTES_MAX),
    ANY64("steps"),
    ANY64("steps_ms"),
};
BODY(metric, NULL);

static const struct gpul_field_rule event_fields[] = {
    CHOICE("kind", 1),
    NODE_NAME("node_name", 0),
    HOSTNAME("hostname"),
    ANY32("have"),
    ANY32("need"),
    SENTENCE("text"),
    MESSAGES("rows", 0, GPUL_PROBE_ROWS_MAX, self_test_row_rule),
    MESSAGES("members", 0, GPUL_MEMBERS_PAGE_MAX, member_rule),
    FLAG("is_simulated"),
    STRING("backend", NAME, 0, GPUL_TOKEN_BYTES_MAX),
    STRING("ranks", NAME, 0, GPUL_TEXT_BYTES_MAX),
    STRING("phase", NAME, 0, GPUL_TOKEN_BYTES_MAX),
    MESSAGES("pairs", 0, GPUL_PAIRS_PAGE_MAX, pair_row_rule),
    MESSAGES("verdicts", 0, GPUL_VERDICTS_PAGE_MAX, pair_verdict_rule),
    MESSAGES("findings", 0, GPUL_CHECK_PAGE_MAX, finding_rule),
    MESSAGES("facts", 0, GPUL_FACTS_MAX, fact_rule),
    MESSAGES("metrics", 0, GPUL_EXITS_MAX, metric_rule),
};
BODY(event, NULL);

static const struct gpul_field_rule job_end_fields[] = {
    NUMBER("exit_code", 0, 255),
    STRING("reason", NAME, 1, GPUL_TOKEN_BYTES_MAX),
    SENTENCE("text"),
    RANK("rank"),
    FLAG("has_rank"),
    NODE_NAME("node_name", 0),
    HOSTNAME("hostname"),
    PATH("log"),
    LIST("unclean", LINES, 0, GPUL_UNCLEAN_MAX, 1, GPUL_UNCLEAN_BYTES_MAX),
    MESSAGES("exits", 0, GPUL_JOB_END_EXITS_MAX, exit_rule),
    ANY32("generation"),
    ANY32("restarts"),
    CHOICE("doubles", 0),
    STRING("stopped_ranks", NAME, 0, GPUL_STOPPED_RANKS_BYTES_MAX),
    ANY32("stopped_count"),
    ANY64("stranger_count"),
    SENTENCE("strangers"),
    OPTIONAL_MESSAGE("findings", finding_counts_rule),
};
BODY(job_end, gpul_check_job_end);

static const struct gpul_field_rule cancel_fields[] = {
    NUMBER("signal", 0, GPUL_SIGNAL_MAX),
    FLAG("is_immediate"),
    FLAG("is_timeout"),
};
BODY(cancel, NULL);

static const struct gpul_field_rule node_gone_fields[] = {
    NODE_NAME("node_name", 1),
    SENTENCE("text"),
    CHOICE("why", 0),
};
BODY(node_gone, NULL);

static const struct gpul_field_rule notice_fields[] = {
    STRING("text", LINES, 1, GPUL_TEXT_BYTES_MAX),
};
BODY(notice, NULL);

const struct gpul_body_rule *gpul_body_rule(uint32_t type)
{
    static const struct gpul_body_rule *const rules[] = {
        [GPUL__FRAME__BODY_HELLO] = &hello_rule,
        [GPUL__FRAME__BODY_WELCOME] = &welcome_rule,
        [GPUL__FRAME__BODY_REFUSE] = &refuse_rule,
        [GPUL__FRAME__BODY_HEARTBEAT] = &heartbeat_rule,
        [GPUL__FRAME__BODY_HEARTBEAT_ACK] = &heartbeat_ack_rule,
        [GPUL__FRAME__BODY_JOB] = &job_rule,
        [GPUL__FRAME__BODY_ASSIGN] = &assign_rule,
        [GPUL__FRAME__BODY_READY] = &ready_rule,
        [GPUL__FRAME__BODY_ROSTER] = &roster_rule,
        [GPUL__FRAME__BODY_PROBE_START] = &probe_start_rule,
        [GPUL__FRAME__BODY_PROBE_LISTENING] = &probe_listening_rule,
        [GPUL__FRAME__BODY_PROBE_CONNECT] = &probe_connect_rule,
        [GPUL__FRAME__BODY_PROBE_RESULT] = &probe_result_rule,
        [GPUL__FRAME__BODY_LAUNCH] = &launch_rule,
        [GPUL__FRAME__BODY_EXITS] = &exits_rule,
        [GPUL__FRAME__BODY_STOP] = &stop_rule,
        [GPUL__FRAME__BODY_IDLE] = &idle_rule,
        [GPUL__FRAME__BODY_FINISH] = &finish_rule,
        [GPUL__FRAME__BODY_OUTPUT] = &output_rule,
        [GPUL__FRAME__BODY_CREDIT] = &credit_rule,
        [GPUL__FRAME__BODY_ENV_REPORT] = &env_report_rule,
        [GPUL__FRAME__BODY_EVENT] = &event_rule,
        [GPUL__FRAME__BODY_JOB_END] = &job_end_rule,
        [GPUL__FRAME__BODY_CANCEL] = &cancel_rule,
        [GPUL__FRAME__BODY_NODE_GONE] = &node_gone_rule,
        [GPUL__FRAME__BODY_NOTICE] = &notice_rule,
        [GPUL__FRAME__BODY_PROBE_FACTS] = &probe_facts_rule,
        [GPUL__FRAME__BODY_PROBE_BEGIN] = &probe_begin_rule,
        [GPUL__FRAME__BODY_PROBE_ID] = &probe_id_rule,
        [GPUL__FRAME__BODY_PROBE_IDS] = &probe_ids_rule,
        [GPUL__FRAME__BODY_PROBE_PHASE] = &probe_phase_rule,
        [GPUL__FRAME__BODY_LEAVE] = &leave_rule,
        [GPUL__FRAME__BODY_SIGNAL] = &signal_rule,
        [GPUL__FRAME__BODY_INPUT] = &input_rule,
        [GPUL__FRAME__BODY_INPUT_CREDIT] = &input_credit_rule,
        [GPUL__FRAME__BODY_STALL] = &stall_rule,
        [GPUL__FRAME__BODY_LINK_START] = &link_start_rule,
        [GPUL__FRAME__BODY_LINK_LISTENING] = &link_listening_rule,
        [GPUL__FRAME__BODY_LINK_PEERS] = &link_peers_rule,
        [GPUL__FRAME__BODY_LINK_REPORT] = &link_report_rule,
        [GPUL__FRAME__BODY_PAIR_START] = &pair_start_rule,
        [GPUL__FRAME__BODY_PAIR_LISTENING] = &pair_listening_rule,
        [GPUL__FRAME__BODY_TRIAL_START] = &trial_start_rule,
        [GPUL__FRAME__BODY_TRIAL_RESULT] = &trial_result_rule,
        [GPUL__FRAME__BODY_PAIR_END] = &pair_end_rule,
        [GPUL__FRAME__BODY_SURVEY_START] = &survey_start_rule,
        [GPUL__FRAME__BODY_SURVEY] = &survey_rule,
        [GPUL__FRAME__BODY_CLOCK_PING] = &clock_ping_rule,
        [GPUL__FRAME__BODY_CLOCK_PONG] = &clock_pong_rule,
    };
    return type < COUNT(rules) ? rules[type] : NULL;
}
