/* SPDX-License-Identifier: Apache-2.0
 *
 * A module for a group of GPU machines on AWS that join a job which waits for
 * them, and end themselves after it. The secret of the job is in AWS Secrets
 * Manager; the machines may read that one and nothing else.
 *
 * Source: the documentation of Terraform's language and of its AWS provider.
 */
#include <inttypes.h>

#include "launcher/manifest.h"
#include "launcher/quoting.h"

static void append_head(struct gpul_buf *out, const struct manifest *m)
{
    gpul_buf_appendf(
        out,
        "# %s: a group of GPU machines on AWS, a node of gpulaunch each.\n"
        "#\n"
        "# Once, the secret of the job:\n"
        "#   gpulaunch secret %s.secret\n"
        "#   aws secretsmanager create-secret --name %s \\\n"
        "#       --secret-string file://%s.secret\n"
        "#\n"
        "# On a machine that they can reach, gpulaunch itself:\n"
        "#   gpulaunch --nodes %" PRIu32
        " --port %u --secret-file %s.secret \\\n"
        "#      ",
        m->name, m->name, m->secret != NULL ? m->secret : m->name, m->name,
        m->nodes, m->port, m->name);
    quoting_shell_words(out, m->options, m->option_count);
    gpul_buf_append_text(out, " --");
    quoting_shell_words(out, m->command, m->command_count);
    gpul_buf_append_text(
        out, "\n#\n"
             "# And the nodes, with this file in a folder of its own, and the "
             "ID of\n"
             "# the job, which gpulaunch prints:\n"
             "#   terraform init && terraform apply -var job=ID\n"
             "# The image must have gpulaunch and the AWS CLI in its PATH.\n"
             "\n");
}

static const char providers[] = "terraform {\n"
                                "  required_version = \">= 1.3\"\n"
                                "  required_providers {\n"
                                "    aws = {\n"
                                "      source  = \"hashicorp/aws\"\n"
                                "      version = \">= 5.0\"\n"
                                "    }\n"
                                "  }\n"
                                "}\n"
                                "\n";

/* A value that ends up in the machines' script has only letters that mean
 * nothing to a shell. */
static const char coordinator[] =
    "variable \"coordinator\" {\n"
    "  description = \"Address of the machine where gpulaunch waits.\"\n"
    "  type        = string\n"
    "  validation {\n"
    "    condition     = can(regex(\"^[0-9A-Za-z.:_-]+$\", var.coordinator))\n"
    "    error_message = \"Give a name or an address, without the port.\"\n"
    "  }\n"
    "}\n"
    "\n";

static const char places[] =
    "variable \"subnet_id\" {\n"
    "  description = \"Where the machines are; it must reach coordinator.\"\n"
    "  type        = string\n"
    "  validation {\n"
    "    condition     = startswith(var.subnet_id, \"subnet-\")\n"
    "    error_message = \"Give the ID of a subnet: subnet-...\"\n"
    "  }\n"
    "}\n"
    "\n"
    "variable \"ami\" {\n"
    "  description = \"Image with driver, gpulaunch and the AWS CLI.\"\n"
    "  type        = string\n"
    "  validation {\n"
    "    condition     = startswith(var.ami, \"ami-\")\n"
    "    error_message = \"Give the ID of an image: ami-...\"\n"
    "  }\n"
    "}\n"
    "\n"
    "variable \"instance_type\" {\n"
    "  type    = string\n"
    "  default = \"p5.48xlarge\"\n"
    "  validation {\n"
    "    condition     = can(regex(\"^[a-z0-9-]+\\\\.[a-z0-9-]+$\", "
    "var.instance_type))\n"
    "    error_message = \"Give a type of instance, such as p5.48xlarge.\"\n"
    "  }\n"
    "}\n"
    "\n"
    "variable \"hours_max\" {\n"
    "  description = \"A machine ends itself after that, whatever happens.\"\n"
    "  type        = number\n"
    "  default     = 24\n"
    "  validation {\n"
    "    condition     = var.hours_max >= 1 && var.hours_max == "
    "floor(var.hours_max)\n"
    "    error_message = \"Give a whole number of hours, 1 or more.\"\n"
    "  }\n"
    "}\n"
    "\n";

static void append_number(struct gpul_buf *out, const char *name,
                          uint32_t value, uint32_t least, uint32_t most,
                          const char *what)
{
    gpul_buf_appendf(out,
                     "variable \"%s\" {\n"
                     "  type    = number\n"
                     "  default = %" PRIu32 "\n"
                     "  validation {\n"
                     "    condition = (var.%s >= %" PRIu32 " &&\n"
                     "      var.%s <= %" PRIu32 " &&\n"
                     "      var.%s == floor(var.%s))\n"
                     "    error_message = \"%s, %" PRIu32 " to %" PRIu32 ".\"\n"
                     "  }\n"
                     "}\n"
                     "\n",
                     name, value, name, least, name, most, name, name, what,
                     least, most);
}

static int append_job(struct gpul_buf *out, const struct manifest *m,
                      struct gpul_error *err)
{
    gpul_buf_append_text(
        out, "variable \"job\" {\n"
             "  description = \"ID of the job, as gpulaunch prints it.\"\n"
             "  type        = string\n"
             "  validation {\n"
             "    condition     = can(regex(\"^[0-9A-Za-z._-]+$\", "
             "var.job))\n"
             "    error_message = \"Give the ID that gpulaunch "
             "prints.\"\n"
             "  }\n"
             "}\n"
             "\n"
             "variable \"secret\" {\n"
             "  description = \"Name or ARN of the job's secret in "
             "Secrets Manager.\"\n"
             "  type        = string\n"
             "  default     = ");
    int rc = quoting_hcl(out, m->secret != NULL ? m->secret : m->name, err);
    gpul_buf_append_text(out, "\n}\n\n");
    return rc != 0 ? gpul_wrap(err, rc, "--secret-name") : 0;
}

static const char access_rights[] =
    "data \"aws_secretsmanager_secret\" \"job\" {\n"
    "  arn  = startswith(var.secret, \"arn:\") ? var.secret : null\n"
    "  name = startswith(var.secret, \"arn:\") ? null : var.secret\n"
    "}\n"
    "\n"
    "data \"aws_subnet\" \"nodes\" {\n"
    "  id = var.subnet_id\n"
    "}\n"
    "\n"
    "resource \"aws_iam_role\" \"node\" {\n"
    "  # IAM takes 38 characters of a role's prefix.\n"
    "  name_prefix = \"${substr(local.name, 0, 37)}-\"\n"
    "  assume_role_policy = jsonencode({\n"
    "    Version = \"2012-10-17\"\n"
    "    Statement = [{\n"
    "      Effect    = \"Allow\"\n"
    "      Action    = \"sts:AssumeRole\"\n"
    "      Principal = { Service = \"ec2.amazonaws.com\" }\n"
    "    }]\n"
    "  })\n"
    "}\n"
    "\n"
    "resource \"aws_iam_role_policy\" \"secret\" {\n"
    "  role = aws_iam_role.node.id\n"
    "  policy = jsonencode({\n"
    "    Version = \"2012-10-17\"\n"
    "    Statement = [{\n"
    "      Effect   = \"Allow\"\n"
    "      Action   = \"secretsmanager:GetSecretValue\"\n"
    "      Resource = data.aws_secretsmanager_secret.job.arn\n"
    "    }]\n"
    "  })\n"
    "}\n"
    "\n"
    "resource \"aws_iam_instance_profile\" \"node\" {\n"
    "  name_prefix = \"${local.name}-\"\n"
    "  role        = aws_iam_role.node.name\n"
    "}\n"
    "\n"
    "# The nodes reach each other on all ports: NCCL and the frameworks take\n"
    "# what is free. Nobody else reaches them.\n"
    "resource \"aws_security_group\" \"nodes\" {\n"
    "  name_prefix = \"${local.name}-\"\n"
    "  vpc_id      = data.aws_subnet.nodes.vpc_id\n"
    "  ingress {\n"
    "    from_port = 0\n"
    "    to_port   = 0\n"
    "    protocol  = \"-1\"\n"
    "    self      = true\n"
    "  }\n"
    "  egress {\n"
    "    from_port        = 0\n"
    "    to_port          = 0\n"
    "    protocol         = \"-1\"\n"
    "    cidr_blocks      = [\"0.0.0.0/0\"]\n"
    "    ipv6_cidr_blocks = [\"::/0\"]\n"
    "  }\n"
    "}\n"
    "\n"
    "resource \"aws_placement_group\" \"nodes\" {\n"
    "  name     = \"${local.name}-${var.job}\"\n"
    "  strategy = \"cluster\"\n"
    "}\n"
    "\n";

/* Off, however the script ends: by the trap, and at the latest by the clock. */
static const char machines[] =
    "resource \"aws_instance\" \"node\" {\n"
    "  count                                = var.nodes\n"
    "  ami                                  = var.ami\n"
    "  instance_type                        = var.instance_type\n"
    "  subnet_id                            = var.subnet_id\n"
    "  placement_group                      = aws_placement_group.nodes.id\n"
    "  vpc_security_group_ids               = [aws_security_group.nodes.id]\n"
    "  iam_instance_profile                 = "
    "aws_iam_instance_profile.node.name\n"
    "  instance_initiated_shutdown_behavior = \"terminate\"\n"
    "  metadata_options {\n"
    "    http_tokens = \"required\"\n"
    "  }\n"
    "  tags = {\n"
    "    Name = \"${local.name}-${count.index}\"\n"
    "  }\n"
    "  user_data_replace_on_change = true\n"
    "  user_data                   = <<-EOT\n"
    "    #!/bin/bash\n"
    "    shutdown -h +${var.hours_max * 60}\n"
    "    trap 'shutdown -h now' EXIT\n"
    "    set -eu\n"
    "    umask 077\n"
    "    mkdir -p /run/gpulaunch\n"
    "    aws secretsmanager get-secret-value --output text \\\n"
    "        --region '${split(\":\", "
    "data.aws_secretsmanager_secret.job.arn)[3]}' \\\n"
    "        --secret-id '${data.aws_secretsmanager_secret.job.arn}' \\\n"
    "        --query SecretString >/run/gpulaunch/secret\n"
    "    gpulaunch join '${var.coordinator}' --port ${var.port} \\\n"
    "        --job '${var.job}' --name '${local.name}-${count.index}' \\\n"
    "        --join-timeout ${var.join_seconds}s \\\n"
    "        --secret-file /run/gpulaunch/secret\n"
    "  EOT\n"
    "  depends_on = [aws_iam_role_policy.secret]\n"
    "}\n"
    "\n"
    "output \"addresses\" {\n"
    "  value = aws_instance.node[*].private_ip\n"
    "}\n";

enum { PORT_MAX = 65535, NODES_MAX = 100000, SECONDS_MAX = 86400 };

int manifest_terraform(struct gpul_buf *out, const struct manifest *m,
                       struct gpul_error *err)
{
    append_head(out, m);
    gpul_buf_append_text(out, providers);
    gpul_buf_append_text(out, coordinator);
    append_number(out, "port", m->port, 1, PORT_MAX, "The coordinator's port");
    int rc = append_job(out, m, err);
    gpul_buf_append_text(out, places);
    append_number(out, "nodes", m->nodes, 1, NODES_MAX, "Number of nodes");
    append_number(out, "join_seconds", (m->join_timeout_ms + 999) / 1000, 1,
                  SECONDS_MAX, "How long a node tries to get in");
    gpul_buf_appendf(out, "locals {\n  name = \"%s\"\n}\n\n", m->name);
    gpul_buf_append_text(out, access_rights);
    gpul_buf_append_text(out, machines);
    return rc;
}
