/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/samples.h"

#include <assert.h>
#include <stddef.h>

#include "proto/limits.h"
#include "tests/lib/samples_check.h"
#include "tests/lib/samples_links.h"
#include "tests/lib/samples_pairs.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define BYTES(text)                                                            \
    {                                                                          \
        .len = sizeof(text) - 1, .data = (uint8_t[])                           \
        {                                                                      \
            text                                                               \
        }                                                                      \
    }

/* A message with its descriptor; the fields come behind. */
#define BASE(prefix)                                                           \
    .base = PROTOBUF_C_MESSAGE_INIT(&gpul__##prefix##__descriptor)

static char text[] = "node-2 has no port left\n\tsee its log";
static char call[] = "ncclCommInitRankConfig";
static char no_text[] = "";
static char name[] = "node-2";
static char hostname[] = "gpu02.example";
static char address[] = "192.0.2.2";
static char log_path[] = "/var/log/gpulaunch/j1/attempt-0/rank-2.err";

static char loopback_name[] = "lo";
static char loopback_address[] = "::1";
static char interface_name[] = "eth0";
static Gpul__Interface interfaces[] = {
    {BASE(interface), .name = loopback_name, .address = loopback_address,
     .is_loopback = 1},
    {BASE(interface), .name = interface_name, .address = address},
};
static Gpul__Interface *interface_list[] = {&interfaces[0], &interfaces[1]};
static char boot_id[] = "7ab1d6c0-3f0e-4b0e-9a3c-0d4c7a1f2e11";
static char kernel[] = "6.1.0-18-amd64";
static Gpul__Facts facts = {
    BASE(facts),
    .hostname = hostname,
    .boot_id = boot_id,
    .address = address,
    .n_interfaces = COUNT(interface_list),
    .interfaces = interface_list,
    .cores = 64,
    .memory_bytes = UINT64_C(1) << 40,
    .gpus = 8,
    .kernel = kernel,
    .network_namespace = UINT64_C(4026531840),
};
static char version[] = "0.1.0";
static char job_id[] = "j1";
static Gpul__Hello hello = {
    BASE(hello),
    .protocol_min = 1,
    .protocol_max = 1,
    .version = version,
    .job_id = job_id,
    .node_name = name,
    .instance = UINT64_C(0x0123456789abcdef),
    .facts = &facts,
    .attach = 1,
    .held_generation = 2,
    .held_attempt = 1,
};
static Gpul__Welcome welcome = {
    BASE(welcome),        .protocol = 1,     .version = version,
    .heartbeat_ms = 2000, .lease_ms = 15000,
};
static Gpul__Refuse refuse = {
    BASE(refuse),
    .reason = GPUL__REFUSE__REASON__DUPLICATE_NAME,
    .text = text,
};
static Gpul__Heartbeat heartbeat = {BASE(heartbeat), .sequence = 300};
static Gpul__HeartbeatAck heartbeat_ack = {BASE(heartbeat_ack),
                                           .sequence = 300};

static Gpul__Sweep sweep = {
    BASE(sweep), .bytes_min = 8,        .bytes_max = UINT64_C(1) << 33,
    .factor = 2, .iterations = 20,      .warmup = 6,
    .check = 2,  .busbw_min_gbps = 400,
};
static Gpul__SelfTest self_test = {
    BASE(self_test),
    .level = GPUL__SELF_TEST__LEVEL__QUICK,
    .listen_deadline_ms = 30000,
    .run_deadline_ms = 60000,
    .nccl_library = no_text,
    .sweep = &sweep,
};
static ProtobufCBinaryData arguments[] = {BYTES("python"), BYTES("train.py"),
                                          BYTES(""), BYTES("--name=\xff\xfe")};
static Gpul__Command command = {
    BASE(command),
    .n_arguments = COUNT(arguments),
    .arguments = arguments,
    .working_directory = BYTES("/home/user"),
};
static Gpul__Variable variables[] = {
    {BASE(variable), .name = BYTES("LR"), .value = BYTES("0.1")},
    {BASE(variable), .name = BYTES("EMPTY"), .value = BYTES("")},
};
static Gpul__Variable *variable_list[] = {&variables[0], &variables[1]};
static Gpul__Environment environment = {
    BASE(environment),
    .n_user = COUNT(variable_list),
    .user = variable_list,
    .tf_config = GPUL__ENVIRONMENT__TF_CONFIG__FILE,
    .tf_evaluator_in_cluster = 1,
    .devices = GPUL__ENVIRONMENT__DEVICES__DEVICES_RANK,
    .emulates_slurm = 1,
    .nccl_socket_magic = UINT64_C(0x0123456789abcdef),
};
static char chief[] = "chief";
static char worker[] = "worker";
static Gpul__Role roles[] = {
    {BASE(role), .name = chief, .count = 1},
    {BASE(role), .name = worker, .count = 3},
};
static Gpul__Role *role_list[] = {&roles[0], &roles[1]};
static char node_range[] = "node-[1-3]";
static char spare[] = "spare";
static char *node_names[] = {node_range, spare};
static char log_dir[] = "/var/log/gpulaunch/j1";
static Gpul__InputTarget input_target = {BASE(input_target), .rank = 3};
static Gpul__Hang hang = {
    BASE(hang),
    .watch = GPUL__HANG__WATCH__GIVEN,
    .limit_ms = 600000,
    .stops_job = 1,
};
static char wanted_interface[] = "ib0,192.0.2.2";
static Gpul__Job job = {
    BASE(job),
    .job_id = job_id,
    .mode = GPUL__JOB__MODE__CHECK,
    .node_count = 4,
    .ranks_per_node = 1,
    .n_node_names = COUNT(node_names),
    .node_names = node_names,
    .names_are_ordered = 1,
    .join_timeout_ms = 600000,
    .timeout_ms = 3600000,
    .grace_ms = 30000,
    .self_test = &self_test,
    .command = &command,
    .environment = &environment,
    .n_roles = COUNT(role_list),
    .roles = role_list,
    .max_restarts = 3,
    .report_rank = 2,
    .report_all_ranks = 1,
    .log_dir = log_dir,
    .forwards_output = 1,
    .keeps_logs = 1,
    .input_target = &input_target,
    .orphan_timeout_ms = 60000,
    .warning_signal = 10,
    .warning_ms = 60000,
    .bind = GPUL__BIND__BIND_GPU,
    .hang = &hang,
    .interface = wanted_interface,
    .check = &sample_check,
    .wants_metrics = 1,
};

static uint32_t avoid_ports[] = {20000, 20001};
static Gpul__Assign assign = {
    BASE(assign),
    .node_rank = 1,
    .node_count = 4,
    .first_rank = 8,
    .rank_count = 8,
    .world_size = 32,
    .restart_count = 1,
    .host_rank_count = 16,
    .host_node_index = 1,
    .host_node_count = 2,
    .host_count = 2,
    .n_avoid_ports = COUNT(avoid_ports),
    .avoid_ports = avoid_ports,
};
static Gpul__Ready ready = {BASE(ready), .port_base = 20002, .error = text};
static char addresses[] = "192.0.2.[1-3],2001:db8::7";
static uint32_t port_bases[] = {20000, 20010, 20020, 20030};
static uint32_t rank_counts[] = {8};
static Gpul__Roster roster = {
    BASE(roster),
    .page = 1,
    .page_count = 2,
    .first_node = 896,
    .node_count = 4,
    .addresses = addresses,
    .n_port_bases = COUNT(port_bases),
    .port_bases = port_bases,
    .n_rank_counts = COUNT(rank_counts),
    .rank_counts = rank_counts,
};

static Gpul__ProbeStart probe_start = {
    BASE(probe_start),
    .level = GPUL__SELF_TEST__LEVEL__FULL,
    .node_rank = 1,
    .node_count = 4,
    .token = UINT64_C(0xfedcba9876543210),
    .address = address,
    .deadline_ms = 30000,
    .nccl_library = no_text,
    .left_name = name,
    .right_name = name,
};
static Gpul__ProbeListening probe_listening = {
    BASE(probe_listening),
    .address = address,
    .port = 40000,
};
static Gpul__ProbeConnect probe_connect = {
    BASE(probe_connect),
    .address = address,
    .port = 40000,
    .deadline_ms = 60000,
};
static Gpul__ProbeRow probe_rows[] = {
    {BASE(probe_row), .bytes = 8, .count = 2, .iterations = 20, .min_ns = 9000,
     .median_ns = 10000, .max_ns = 30000, .mean_ns = 11000},
    {BASE(probe_row), .bytes = 1048576, .count = 262144, .iterations = 20,
     .min_ns = 900000, .median_ns = 1000000, .max_ns = 3000000,
     .mean_ns = 1100000, .wrong_elements = 7, .scope = GPUL__SCOPE__SCOPE_NODE},
};
static Gpul__ProbeRow *probe_row_list[] = {&probe_rows[0], &probe_rows[1]};
static char uuid[] = "GPU-7ab1d6c0-3f0e-4b0e-9a3c-0d4c7a1f2e11";
static char phase[] = "coll";
static Gpul__ProbeResult probe_result = {
    BASE(probe_result),
    .n_rows = COUNT(probe_row_list),
    .rows = probe_row_list,
    .error = text,
    .phase = phase,
    .wrong_elements = 7,
    .first_wrong_offset = 1001,
    .first_wrong_bytes = 1048576,
    .probe_rank = 1,
    .device_uuid = uuid,
    .library_error = text,
    .is_simulated = 1,
    .first_wrong_collective = GPUL__COLLECTIVE__COLLECTIVE_ALL_REDUCE,
    .first_wrong_bit = 3,
    .is_remote = 1,
    .first_wrong_scope = GPUL__SCOPE__SCOPE_NODE,
};

static char library_path[] = "/usr/lib/libnccl.so.2";
static char library_version[] = "2.28.9";
static char build_id[] = "a1b2c3d4e5f6";
static Gpul__Library library = {
    BASE(library),        .path = library_path,  .version = library_version,
    .build_id = build_id, .version_code = 22809, .error = text,
    .passed_over = text,
};
static char bus_id[] = "00000000:19:00.0";
static char model[] = "Example H200";
static char finding[] = "PCIe runs at 8 of 16 lanes";
static char *finding_list[] = {finding};
static Gpul__Device device = {
    BASE(device),
    .index = 1,
    .uuid = uuid,
    .bus_id = bus_id,
    .model = model,
    .memory_bytes = UINT64_C(1) << 37,
    .memory_used_bytes = UINT64_C(1) << 20,
    .n_findings = COUNT(finding_list),
    .findings = finding_list,
    .link_gbps = 450,
    .link_kind = GPUL__LINK__LINK_NVLINK,
    .pcie_gbps = 63,
    .ecc = GPUL__DEVICE__SWITCH__ON,
    .mig = GPUL__DEVICE__SWITCH__OFF,
};
static Gpul__Device *device_list[] = {&device};
static char nic_name[] = "mlx5_0:2";
static Gpul__Nic nic = {
    BASE(nic),    .name = nic_name, .kind = GPUL__LINK__LINK_RDMA,
    .gbits = 400, .is_down = 1,
};
static Gpul__Nic *nic_list[] = {&nic};
static char driver_version[] = "580.95.05";
static char refused_device[] = "9";
static char setting[] = "NCCL_DEBUG=INFO";
static char *setting_list[] = {setting};
static Gpul__ProbeFacts probe_facts = {
    BASE(probe_facts),
    .nccl = &library,
    .cuda = &library,
    .nvml = &library,
    .n_devices = COUNT(device_list),
    .devices = device_list,
    .error = text,
    .is_simulated = 1,
    .n_settings = COUNT(setting_list),
    .settings = setting_list,
    .has_scalable_init = 1,
    .has_comm_split = 1,
    .n_nics = COUNT(nic_list),
    .nics = nic_list,
    .driver_version = driver_version,
    .refused_device = refused_device,
};
static Gpul__SelfTest gpu_self_test = {
    BASE(self_test),
    .level = GPUL__SELF_TEST__LEVEL__FULL,
    .listen_deadline_ms = 30000,
    .run_deadline_ms = 120000,
    .backend = GPUL__SELF_TEST__BACKEND__BACKEND_NCCL,
    .nccl_library = library_path,
    .sweep = &sweep,
};
static Gpul__ProbeBegin probe_begin = {
    BASE(probe_begin),
    .first_rank = 8,
    .rank_count = 8,
    .world_size = 32,
    .id_count = 1,
    .self_test = &gpu_self_test,
    .device_uuid = uuid,
    .device_index = 1,
    .abort_deadline_ms = 10000,
    .node_count = 4,
    .ranks_per_node = 8,
    .interface = interface_name,
    .debug_file = library_path,
    .node_rank_count = 8,
    .node_first_rank = 8,
};
static uint8_t unique_id[GPUL_UNIQUE_ID_BYTES] = {0xca, 0xfe, [127] = 1};
static Gpul__ProbeId probe_id = {
    BASE(probe_id),
    .index = 0,
    .id = {.len = sizeof(unique_id), .data = unique_id},
    .address = address,
};
static ProtobufCBinaryData unique_ids[] = {
    {.len = sizeof(unique_id), .data = unique_id},
    {.len = sizeof(unique_id), .data = unique_id},
};
static Gpul__ProbeIds probe_ids = {
    BASE(probe_ids),
    .n_ids = COUNT(unique_ids),
    .ids = unique_ids,
};
static Gpul__ProbePhase probe_phase = {
    BASE(probe_phase),
    .probe_rank = 9,
    .phase = GPUL__PROBE_PHASE__PHASE__INIT,
    .text = text,
    .state = GPUL__PROBE_PHASE__STATE__STATE_INSIDE,
    .call = call,
    .since_ms = 12000,
    .progress = 41,
    .stage = 3,
};

static Gpul__Launch launch = {BASE(launch), .attempt = 1};
static char nccl_warning[] = "NCCL WARN NET/Socket: connection closed";
static char *nccl_warnings[] = {nccl_warning};
static Gpul__Evidence evidence = {
    BASE(evidence),
    .tail = text,
    .n_nccl_warnings = COUNT(nccl_warnings),
    .nccl_warnings = nccl_warnings,
    .error_file = BYTES("{\"message\": \"x\"}"),
    .error_file_bytes = 16,
};
static char metric_text[] = "1234.5 images/s";
static Gpul__Exit exit_rows[] = {
    {BASE(exit), .rank = 2, .code = 7, .signal = 9, .exec_errno = 13,
     .text = text, .is_bind_error = 1, .ran_ms = 1500, .log = log_path,
     .pid = 4242, .out_of_memory = GPUL__EXIT__OUT_OF_MEMORY__CGROUP,
     .cpu_ms = 900, .rss_bytes = UINT64_C(1) << 33, .evidence = &evidence,
     .is_stopped = 1, .after_ms = 20, .metric = metric_text, .steps = 95,
     .steps_ms = 9500},
    {BASE(exit), .rank = 3, .text = no_text, .log = no_text, .metric = no_text},
};
static Gpul__Exit *exit_list[] = {&exit_rows[0], &exit_rows[1]};
static Gpul__Exits exits = {
    BASE(exits),
    .n_exits = COUNT(exit_list),
    .exits = exit_list,
};
static Gpul__Stop stop = {BASE(stop), .signal = 15, .grace_ms = 30000};
static char unclean_process[] = "4242 python";
static char *unclean[] = {unclean_process};
static Gpul__Idle idle = {
    BASE(idle),
    .n_unclean = COUNT(unclean),
    .unclean = unclean,
};
static Gpul__Leave leave = {
    BASE(leave),
    .text = text,
    .n_unclean = COUNT(unclean),
    .unclean = unclean,
};
static Gpul__Signal signal_all = {BASE(signal), .signal = 10};
static Gpul__Input input = {
    BASE(input),
    .data = BYTES("a line\nof \xff bytes"),
    .is_end = 1,
};
static Gpul__InputCredit input_credit = {
    BASE(input_credit),
    .bytes = 65536,
    .is_closed = 1,
};
static char letter[] = "S";
static char wait_channel[] = "futex_wait_queue";
static char gpu_words[] = "GPU 0 at 100 %, 118 of 400 W";
static Gpul__StallRow stall_rows[] = {
    {
        BASE(stall_row),
        .rank = 2,
        .kind = GPUL__STALL_ROW__KIND__BEHIND,
        .steps = 118,
        .silence_ms = 45000,
        .limit_ms = 30000,
        .is_learned = 1,
        .state = letter,
        .threads = 17,
        .cpu_ms = 1,
        .look_ms = 1000,
        .wait_channel = wait_channel,
        .text = gpu_words,
    },
};
static Gpul__StallRow *stall_list[] = {&stall_rows[0]};
static Gpul__Stall stall = {
    BASE(stall),
    .n_rows = COUNT(stall_list),
    .rows = stall_list,
};
static Gpul__Finish finish = {BASE(finish), .keeps_logs = 1};
static Gpul__Output output = {
    BASE(output),
    .rank = 2,
    .stream = GPUL__OUTPUT__STREAM__STDERR,
    .data = BYTES("loss 0.25\0\xff\n"),
    .node_rank = 1,
};
static Gpul__Credit credit = {BASE(credit), .node_rank = 1, .bytes = 65536};

static char rule[] = "given with -x";
static Gpul__EnvEntry env_entries[] = {
    {BASE(env_entry), .name = BYTES("RANK"), .value = BYTES("2"),
     .action = GPUL__ENV_ENTRY__ACTION__SET, .rule = rule},
    {BASE(env_entry), .name = BYTES("PATH"), .value = BYTES("/bin:\xe9"),
     .action = GPUL__ENV_ENTRY__ACTION__INHERITED, .rule = no_text},
};
static Gpul__EnvEntry *env_entry_list[] = {&env_entries[0], &env_entries[1]};
static char cpus[] = "0-3,8";
static char memory_nodes[] = "0";
static Gpul__EnvReport env_report = {
    BASE(env_report),
    .rank = 2,
    .n_entries = COUNT(env_entry_list),
    .entries = env_entry_list,
    .is_last = 1,
    .cpus = cpus,
    .memory_nodes = memory_nodes,
};

static Gpul__SelfTestRow self_test_row = {
    BASE(self_test_row),
    .bytes = 1048576,
    .count = 262144,
    .iterations = 20,
    .min_ns = 900000,
    .median_ns = 1000000,
    .max_ns = 3000000,
    .ceiling_kind = GPUL__LINK__LINK_TCP,
    .algbw_gbps = 1.048576,
    .busbw_gbps = 1.572864,
    .wrong_elements = 7,
    .scope = GPUL__SCOPE__SCOPE_NODE,
    .ranks = 8,
};
static Gpul__SelfTestRow *self_test_row_list[] = {&self_test_row};
static char rejected[] = "docker0 172.17.0.1 (bridge): no port";
static char *rejected_list[] = {rejected};
static Gpul__Member member = {
    BASE(member),
    .node_name = name,
    .hostname = hostname,
    .address = address,
    .node_rank = 1,
    .first_rank = 8,
    .rank_count = 8,
    .gpus = 8,
    .interface = interface_name,
    .n_rejected = 1,
    .rejected = rejected_list,
};
static Gpul__Member *member_list[] = {&member};
static char backend[] = "double";
static char ranks[] = "0,3-5";
static Gpul__Metric metric = {
    BASE(metric), .rank = 2, .text = metric_text, .steps = 95, .steps_ms = 9500,
};
static Gpul__Metric *metric_list[] = {&metric};
static Gpul__Event event = {
    BASE(event),
    .kind = GPUL__EVENT__KIND__ASSIGNED,
    .node_name = name,
    .hostname = hostname,
    .have = 3,
    .need = 4,
    .text = text,
    .n_rows = COUNT(self_test_row_list),
    .rows = self_test_row_list,
    .n_members = COUNT(member_list),
    .members = member_list,
    .is_simulated = 1,
    .backend = backend,
    .ranks = ranks,
    .phase = phase,
    .n_pairs = SAMPLE_PAIR_ROWS,
    .pairs = sample_pair_rows,
    .n_verdicts = SAMPLE_PAIR_VERDICTS,
    .verdicts = sample_pair_verdicts,
    .n_findings = COUNT(sample_findings),
    .findings = sample_findings,
    .n_facts = COUNT(sample_facts),
    .facts = sample_facts,
    .n_metrics = COUNT(metric_list),
    .metrics = metric_list,
};
static char reason[] = "rank_failed";
static char stopped_ranks[] = "0-3,8";
static Gpul__JobEnd job_end = {
    BASE(job_end),
    .exit_code = 7,
    .reason = reason,
    .text = text,
    .rank = 2,
    .has_rank = 1,
    .node_name = name,
    .hostname = hostname,
    .log = log_path,
    .n_unclean = COUNT(unclean),
    .unclean = unclean,
    .n_exits = COUNT(exit_list),
    .exits = exit_list,
    .generation = 2,
    .restarts = 1,
    .doubles = GPUL__JOB_END__DOUBLES__SOME,
    .stopped_ranks = stopped_ranks,
    .stopped_count = 5,
    .stranger_count = 12,
    .strangers = text,
    .findings = &sample_counts,
};
static Gpul__Cancel cancel = {
    BASE(cancel),
    .signal = 2,
    .is_immediate = 1,
    .is_timeout = 1,
};
static Gpul__NodeGone node_gone = {
    BASE(node_gone),
    .node_name = name,
    .text = text,
    .why = GPUL__NODE_GONE__WHY__NO_LOGIN,
};
static Gpul__Notice notice = {BASE(notice), .text = text};

static void *const bodies[] = {
    [GPUL__FRAME__BODY_HELLO] = &hello,
    [GPUL__FRAME__BODY_WELCOME] = &welcome,
    [GPUL__FRAME__BODY_REFUSE] = &refuse,
    [GPUL__FRAME__BODY_HEARTBEAT] = &heartbeat,
    [GPUL__FRAME__BODY_HEARTBEAT_ACK] = &heartbeat_ack,
    [GPUL__FRAME__BODY_JOB] = &job,
    [GPUL__FRAME__BODY_ASSIGN] = &assign,
    [GPUL__FRAME__BODY_READY] = &ready,
    [GPUL__FRAME__BODY_ROSTER] = &roster,
    [GPUL__FRAME__BODY_PROBE_START] = &probe_start,
    [GPUL__FRAME__BODY_PROBE_LISTENING] = &probe_listening,
    [GPUL__FRAME__BODY_PROBE_CONNECT] = &probe_connect,
    [GPUL__FRAME__BODY_PROBE_RESULT] = &probe_result,
    [GPUL__FRAME__BODY_PROBE_FACTS] = &probe_facts,
    [GPUL__FRAME__BODY_PROBE_BEGIN] = &probe_begin,
    [GPUL__FRAME__BODY_PROBE_ID] = &probe_id,
    [GPUL__FRAME__BODY_PROBE_IDS] = &probe_ids,
    [GPUL__FRAME__BODY_PROBE_PHASE] = &probe_phase,
    [GPUL__FRAME__BODY_LAUNCH] = &launch,
    [GPUL__FRAME__BODY_EXITS] = &exits,
    [GPUL__FRAME__BODY_STOP] = &stop,
    [GPUL__FRAME__BODY_IDLE] = &idle,
    [GPUL__FRAME__BODY_FINISH] = &finish,
    [GPUL__FRAME__BODY_OUTPUT] = &output,
    [GPUL__FRAME__BODY_CREDIT] = &credit,
    [GPUL__FRAME__BODY_ENV_REPORT] = &env_report,
    [GPUL__FRAME__BODY_EVENT] = &event,
    [GPUL__FRAME__BODY_JOB_END] = &job_end,
    [GPUL__FRAME__BODY_CANCEL] = &cancel,
    [GPUL__FRAME__BODY_NODE_GONE] = &node_gone,
    [GPUL__FRAME__BODY_NOTICE] = &notice,
    [GPUL__FRAME__BODY_LEAVE] = &leave,
    [GPUL__FRAME__BODY_SIGNAL] = &signal_all,
    [GPUL__FRAME__BODY_INPUT] = &input,
    [GPUL__FRAME__BODY_INPUT_CREDIT] = &input_credit,
    [GPUL__FRAME__BODY_STALL] = &stall,
    [GPUL__FRAME__BODY_LINK_START] = &sample_link_start,
    [GPUL__FRAME__BODY_LINK_LISTENING] = &sample_link_listening,
    [GPUL__FRAME__BODY_LINK_PEERS] = &sample_link_peers,
    [GPUL__FRAME__BODY_LINK_REPORT] = &sample_link_report,
    [GPUL__FRAME__BODY_PAIR_START] = &sample_pair_start,
    [GPUL__FRAME__BODY_PAIR_LISTENING] = &sample_pair_listening,
    [GPUL__FRAME__BODY_TRIAL_START] = &sample_trial_start,
    [GPUL__FRAME__BODY_TRIAL_RESULT] = &sample_trial_result,
    [GPUL__FRAME__BODY_PAIR_END] = &sample_pair_end,
    [GPUL__FRAME__BODY_SURVEY_START] = &sample_survey_start,
    [GPUL__FRAME__BODY_SURVEY] = &sample_survey,
    [GPUL__FRAME__BODY_CLOCK_PING] = &sample_clock_ping,
    [GPUL__FRAME__BODY_CLOCK_PONG] = &sample_clock_pong,
};

uint32_t sample_next(uint32_t type)
{
    do {
        type++;
    } while (type < COUNT(bodies) && bodies[type] == NULL);
    return type < COUNT(bodies) ? type : 0;
}

Gpul__Frame sample_frame(uint32_t type)
{
    assert(type > 0 && type < COUNT(bodies));
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.body_case = (Gpul__Frame__BodyCase)type;
    /* Every member of the union is a pointer to a body. */
    frame.hello = bodies[type];
    frame.epoch = 1;
    frame.generation = 2;
    return frame;
}

void sample_append(struct gpul_buf *out, uint32_t type)
{
    Gpul__Frame frame = sample_frame(type);
    int rc = gpul_message_encode(out, &frame, NULL);
    assert(rc == 0);
    (void)rc;
}

enum gpul_peer sample_sender(uint32_t type)
{
    unsigned senders = gpul_message_rule(type)->senders;
    return (enum gpul_peer)(senders & (~senders + 1));
}
