/* SPDX-License-Identifier: Apache-2.0
 *
 * Every bound of the wire in one place, each with its unit and its reason.
 */
#ifndef GPUL_PROTO_LIMITS_H
#define GPUL_PROTO_LIMITS_H

/* The protocol this program speaks, and the oldest it still understands. */
#define GPUL_PROTOCOL 1u
#define GPUL_PROTOCOL_MIN 1u

/* Bytes of the length that stands before every frame. */
#define GPUL_FRAME_PREFIX_BYTES 4u

/* Ordinary frames between an agent and the coordinator. */
#define GPUL_FRAME_BYTES_MAX (64u << 10)
/* Before a peer is known it may send one Hello, no larger than this. */
#define GPUL_HELLO_BYTES_MAX (4u << 10)
#define GPUL_HEARTBEAT_BYTES_MAX 64u
/* Messages of a few numbers and a literal. */
#define GPUL_SMALL_BYTES_MAX 512u
/* Messages that carry one sentence, a few names or both. */
#define GPUL_NOTE_BYTES_MAX (2u << 10)
/* 64 devices, each with all its findings in full. */
#define GPUL_PROBE_FACTS_BYTES_MAX (256u << 10)
/* What a probe is started with: numbers and the paths of two files. */
#define GPUL_PROBE_BEGIN_BYTES_MAX (16u << 10)
/* GPUL_INTERFACES_MAX interfaces, each with a reason, stay below this. */
#define GPUL_LINK_LISTENING_BYTES_MAX (16u << 10)
/* One page of endpoints stays below this. */
#define GPUL_LINK_PEERS_BYTES_MAX (128u << 10)
/* A bit for every endpoint of the largest job, and a few failures. */
#define GPUL_LINK_REPORT_BYTES_MAX (GPUL_LINK_MISSED_BYTES_MAX + 1024u)
/* Figures of two ways, each with a sentence. */
#define GPUL_TRIAL_BYTES_MAX (4u << 10)
/* GPUL_FACTS_MAX facts, each with a full value, stay below this. */
#define GPUL_SURVEY_BYTES_MAX (384u << 10)
/* One page of members, one of findings, of trials and of verdicts and the facts
 * of a node, each with all texts in full, stay below this together. */
#define GPUL_EVENT_BYTES_MAX (1152u << 10)
/* GPUL_EXITS_MAX exits, each with a full text and path, and as much evidence
 * as a node may send, stay below this. */
#define GPUL_EXITS_BYTES_MAX (384u << 10)
/* GPUL_STALL_ROWS_MAX rows, each with a full text, stay below this. */
#define GPUL_STALL_BYTES_MAX (64u << 10)
/* The last word to the front end must never fail for its size. */
#define GPUL_JOB_END_BYTES_MAX (512u << 10)
/* A Job carries the command line and -x values; Linux itself allows 2 MiB
 * of both with the usual stack limit, one string at most 128 KiB. */
#define GPUL_JOB_BYTES_MAX (2u << 20)
/* One environment string may be 128 KiB, so one report entry may be too. */
#define GPUL_ENV_REPORT_BYTES_MAX (256u << 10)

/* Output is cut into pieces of at most this much data. */
#define GPUL_OUTPUT_BYTES_MAX (32u << 10)
#define GPUL_OUTPUT_FRAME_BYTES_MAX (GPUL_OUTPUT_BYTES_MAX + 64u)
/* Output a node may have sent beyond what the front end has written: its
 * window is the share of the total, within these bounds. It bounds the
 * memory that a flood of output takes in coordinator and front end. */
#define GPUL_OUTPUT_WINDOW_TOTAL_BYTES (64u << 20)
#define GPUL_OUTPUT_WINDOW_BYTES_MAX (1u << 20)
#define GPUL_OUTPUT_WINDOW_BYTES_MIN (64u << 10)

/* Input is cut likewise. Beyond what the ranks' pipes have taken, the front
 * end may have sent this much; with many nodes that all get the same, the
 * share of an output window. It bounds the memory of coordinator and agents. */
#define GPUL_INPUT_BYTES_MAX (32u << 10)
#define GPUL_INPUT_FRAME_BYTES_MAX (GPUL_INPUT_BYTES_MAX + 64u)
#define GPUL_INPUT_WINDOW_BYTES_MAX GPUL_OUTPUT_WINDOW_BYTES_MAX

/* A peer that lets this much pile up is too slow and is dropped. Larger
 * than a Job, a roster and a window together. */
#define GPUL_SEND_QUEUE_BYTES_MAX (8u << 20)
/* A front end whose terminal is paused does not read: then the windows of
 * all nodes may wait for it, and it is not too slow. */
#define GPUL_FRONT_END_QUEUE_BYTES_MAX (1u << 30)

/* Largest run of bytes that a connection reads at once. */
#define GPUL_READ_BYTES_MAX (64u << 10)

/* protobuf-c amplifies hostile input about 45 times; a decode may allocate
 * this many times the frame, plus the constant. */
#define GPUL_DECODE_BUDGET_FACTOR 16u
#define GPUL_DECODE_BUDGET_BYTES (64u << 10)

/* Strings and lists, checked right after decoding. */
#define GPUL_NAME_BYTES_MAX 253u   /* host and node names: DNS's bound */
#define GPUL_ADDRESS_BYTES_MAX 64u /* an IPv6 literal with its scope */
#define GPUL_TEXT_BYTES_MAX 1024u  /* sentences for people */
#define GPUL_PATH_BYTES_MAX 4096u  /* PATH_MAX */
#define GPUL_JOB_ID_BYTES_MAX 64u
#define GPUL_VERSION_BYTES_MAX 64u
#define GPUL_INTERFACE_BYTES_MAX 16u /* IFNAMSIZ */
#define GPUL_BOOT_ID_BYTES_MAX 64u   /* a UUID, and room */
#define GPUL_KERNEL_BYTES_MAX 64u    /* utsname's release */
#define GPUL_TOKEN_BYTES_MAX 32u     /* words of ours: role, phase, reason */
#define GPUL_UNCLEAN_BYTES_MAX 512u  /* "node: pid name" */
#define GPUL_HOSTLIST_BYTES_MAX (64u << 10) /* one expression */
/* Linux: one string of an argument or environment list (MAX_ARG_STRLEN). */
#define GPUL_EXEC_STRING_BYTES_MAX (128u << 10)
#define GPUL_INTERFACES_MAX 32u
#define GPUL_REJECTION_BYTES_MAX 64u /* why an interface is no candidate */
/* The same with name, address and kind, and of so many for the user. */
#define GPUL_REJECTED_BYTES_MAX 192u
#define GPUL_REJECTED_MAX 8u
/* Candidates of a node, that all others dial. */
#define GPUL_LINKS_MAX 8u
#define GPUL_LINK_PAGE_NODES_MAX 896u
#define GPUL_LINK_MISSED_BYTES_MAX (GPUL_NODES_MAX / 8u * GPUL_LINKS_MAX)
#define GPUL_LINK_FAILURES_MAX 16u
/* Networks of a node that trials between two nodes run on. */
#define GPUL_RAILS_MAX GPUL_LINKS_MAX
/* Trials, and verdicts, in one event. */
#define GPUL_PAIRS_PAGE_MAX 64u
#define GPUL_VERDICTS_PAGE_MAX 32u
#define GPUL_EVIDENCE_BYTES_MAX 512u /* of a verdict */
#define GPUL_ARGUMENTS_MAX 16384u
#define GPUL_VARIABLES_MAX 4096u
#define GPUL_ROLES_MAX 8u
/* So many unfolded literals, ports and counts always fit one frame. */
#define GPUL_ROSTER_PAGE_NODES_MAX 896u
#define GPUL_ROSTER_ADDRESSES_BYTES_MAX                                        \
    (GPUL_ROSTER_PAGE_NODES_MAX * (GPUL_ADDRESS_BYTES_MAX + 1u))
#define GPUL_FACTS_MAX 512u         /* that a node says in a check */
#define GPUL_FACT_KEY_BYTES_MAX 64u /* "gpu.12.pcie.width_max", and room */
#define GPUL_FACT_VALUE_BYTES_MAX 512u
#define GPUL_FACT_UNKNOWN_BYTES_MAX 160u /* why there is no value */
#define GPUL_CHECK_ID_BYTES_MAX 16u      /* "NET-110" */
#define GPUL_CHECK_NODES_BYTES_MAX 2048u /* a list that is longer is cut */
#define GPUL_CHECK_VALUE_BYTES_MAX 256u
#define GPUL_CHECK_REMEDY_BYTES_MAX 512u
/* Findings of a check that are told one by one; all are counted. */
#define GPUL_CHECK_FINDINGS_MAX 4096u
#define GPUL_CHECK_PAGE_MAX 64u /* findings in one event */
#define GPUL_PROBE_ROWS_MAX 256u
#define GPUL_DEVICES_MAX 64u            /* of a node; MIG slices included */
#define GPUL_DEVICE_UUID_BYTES_MAX 96u  /* "MIG-" and a UUID, and room */
#define GPUL_DEVICE_MODEL_BYTES_MAX 96u /* NVML's own bound */
#define GPUL_BUILD_ID_BYTES_MAX 64u     /* hexadecimal digits */
#define GPUL_FINDINGS_MAX 16u           /* of one device */
#define GPUL_FINDING_BYTES_MAX 160u
/* Every second processor of 8192, the most that Linux has, takes 20 KiB. */
#define GPUL_CPU_LIST_BYTES_MAX (24u << 10)
#define GPUL_SETTINGS_MAX 64u       /* NCCL_* variables of a node */
#define GPUL_NICS_MAX 64u           /* ports of network cards of a node */
#define GPUL_NIC_NAME_BYTES_MAX 67u /* IB_DEVICE_NAME_MAX, colon and port */
#define GPUL_CALL_BYTES_MAX 64u     /* a library's function */
#define GPUL_UNIQUE_ID_BYTES 128u   /* NCCL_UNIQUE_ID_BYTES */
/* NCCL_ID per 128 ranks up to here; they must fit one frame. */
#define GPUL_UNIQUE_IDS_MAX 400u
#define GPUL_RANKS_PER_UNIQUE_ID 128u
#define GPUL_EXITS_MAX 48u
#define GPUL_JOB_END_EXITS_MAX 64u
/* What is left of a rank that failed: of so many of a node, for an attempt,
 * and of so many of the job. */
#define GPUL_EVIDENCES_MAX 4u
#define GPUL_TAIL_BYTES_MAX 4096u
#define GPUL_METRIC_BYTES_MAX 256u /* what a rank says of its figure */
#define GPUL_NCCL_WARNINGS_MAX 8u
#define GPUL_NCCL_WARNING_BYTES_MAX 256u
#define GPUL_ERROR_FILE_BYTES_MAX (16u << 10)
#define GPUL_STOPPED_RANKS_BYTES_MAX 4096u
#define GPUL_STALL_ROWS_MAX 64u
#define GPUL_WAIT_CHANNEL_BYTES_MAX 64u /* a function of the kernel */
#define GPUL_MEMBERS_PAGE_MAX 128u
#define GPUL_AVOID_PORTS_MAX 64u
#define GPUL_ENV_ENTRIES_MAX 8192u
#define GPUL_UNCLEAN_MAX 64u

/* Before a peer has proved that it has a key: its first TLS record, before
 * any object of OpenSSL is made for it (a ClientHello of ours has 350 bytes,
 * with the longest names 680), and all that it may send in the handshake,
 * which takes half of that. */
#define GPUL_FIRST_RECORD_BYTES_MAX 1024u
#define GPUL_STRANGER_BYTES_MAX (4u << 10)
/* Changes of keys that a peer may ask for; ours never do. Each costs a
 * derivation and an answer. */
#define GPUL_KEY_UPDATES_MAX 16u

/* Connections that have proved nothing yet, in all: 89 MB if every one of them
 * is in a handshake (few names can be recorded, but that is no bound), 1 MB if
 * none is. And of one address, so that one machine does not take all places.
 * Nodes that are turned away try again, and a handshake takes milliseconds. */
#define GPUL_STRANGERS_MAX 1024u
#define GPUL_STRANGERS_OF_ADDRESS_MAX 64u
/* Such a connection has sent its first record within this time of accept, and
 * proved its key within that. A node sends at once; the rest is for a slow
 * network and a busy coordinator. */
#define GPUL_FIRST_RECORD_MS 2000u
#define GPUL_PROOF_MS 5000u
/* In the handshake, of those that claim the same name: a node has one such
 * connection, and perhaps one that it has given up. Who has recorded how a
 * node begins can do the same, but no more often. */
#define GPUL_STRANGERS_OF_NAME_MAX 4u
/* Then, with a key that is good, and no Hello yet: of the node whose key it is.
 * One more, and the oldest gives way. */
#define GPUL_GUESTS_OF_NAME_MAX 4u
/* Within this time of an end for being late, where a place is wanted and none
 * is free, the oldest gives way: one that has not begun a handshake, since a
 * node does so with the packet after the one that opens its connection, or one
 * whose handshake takes longer than it should. So a crowd of strangers that
 * comes again and again keeps no node out; and a crowd of honest nodes, of whom
 * none is late, does not get in its own way. */
#define GPUL_CROWD_MS 60000u
#define GPUL_YIELD_SILENT_MS 50u
#define GPUL_YIELD_MS 500u
/* One line of the log about them all within this time. */
#define GPUL_STRANGER_LINE_MS 1000u

/* Messages of a node that has shown its key, so many a second and so many at
 * once; see coordinator/pace.h. Of the node itself: one heartbeat in 2 s, a
 * few messages in each phase, a notice for each variable of the user's that is
 * kept or replaced. */
#define GPUL_PACE_PER_S 50u
#define GPUL_PACE_BURST 200u
/* Beyond that for each rank: its end is told once an attempt, often together
 * with others; that it stalls or goes on, at the limit it is given, which may
 * be a second. */
#define GPUL_PACE_OF_RANK_PER_S 4u
#define GPUL_PACE_OF_RANK_BURST 8u
/* Of a self-test on GPUs: each probe tells its phase once a second, all of a
 * node may do so at once, and have a result each. */
#define GPUL_PACE_PROBES_PER_S (4u * GPUL_DEVICES_MAX)
#define GPUL_PACE_PROBES_BURST (32u * GPUL_DEVICES_MAX)
/* Reports of an environment, for each rank, over the whole connection: Linux
 * allows 6 MiB of strings, and a report holds GPUL_ENV_REPORT_BYTES_MAX. */
#define GPUL_PACE_REPORTS_OF_RANK 64u

/* The job itself. */
#define GPUL_NODES_MAX 131072u
#define GPUL_RANKS_PER_NODE_MAX 4096u
#define GPUL_RANKS_MAX 1048576u
/* Ports a node holds beside one for each rank: MASTER_PORT, JAX coordinator,
 * Horovod rendezvous (used on node 0 only, held on all: one rule). */
#define GPUL_EXTRA_PORTS 3u
/* Addresses that a coordinator listens on, and that a node may try. */
#define GPUL_COORDINATORS_MAX 8u
/* So long a node tries one of several at first: enough for a handshake with a
 * coordinator that has much to do. */
#define GPUL_DIAL_MS 5000u
#define GPUL_PORT_MAX 65535u
#define GPUL_SIGNAL_MAX 64u  /* SIGRTMAX on Linux */
#define GPUL_ERRNO_MAX 4095u /* MAX_ERRNO on Linux */
#define GPUL_RESTARTS_MAX 10000u

/* Liveness: a node beats every HEARTBEAT ms and is lost after LEASE ms. */
#define GPUL_HEARTBEAT_MS 2000u
#define GPUL_LEASE_MS 15000u
/* A node whose connection has closed is waited for so long: its keeper starts
 * a new agent at once, or after a second if agents die one after another, and
 * that one dials until it is in. Shorter than a lease, so that a node that is
 * gone for good is known within one. */
#define GPUL_AWAY_MS 10000u
/* Ranks whose keeper has no agent that is attached run so long, unless the
 * user says otherwise: time for a coordinator to be started again. */
#define GPUL_ORPHAN_TIMEOUT_MS 60000u
/* A new connection must have sent its Hello within this time. */
#define GPUL_HELLO_DEADLINE_MS 5000u
/* Nodes must have leased their ports within this time of Assign. */
#define GPUL_READY_DEADLINE_MS 30000u
/* After the grace, SIGKILL and the last output may take this long more. */
#define GPUL_DRAIN_DEADLINE_MS 10000u

#endif
