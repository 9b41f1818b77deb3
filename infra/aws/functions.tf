# One function for each folder in functions/; what each takes is said in its function.yaml and nowhere else.

locals {
  folder = "${path.module}/../../functions"
  known  = { for file in fileset(local.folder, "*/function.yaml") : dirname(file) => yamldecode(file("${local.folder}/${file}")) }

  functions = { for name, facts in local.known : name => facts if var.functions == null ? true : contains(var.functions, name) }
  timed     = { for name, facts in local.functions : name => facts if can(facts.schedule) }
  asked     = { for name, facts in local.functions : name => facts if can(facts.http) }

  reads          = { for name, facts in local.functions : name => concat(facts.needs.settings.required, facts.needs.settings.optional) }
  known_settings = distinct(flatten(values(local.reads)))

  # Those that docs/settings.md calls secret; a test compares.
  secret_settings = [
    "COSTGUARD_FORGE_TOKEN", "COSTGUARD_LEDGER", "COSTGUARD_LINK_SECRET", "COSTGUARD_PROMETHEUS_AUTHORIZATION", "COSTGUARD_ROBOTS",
    "COSTGUARD_SLACK_SIGNING_SECRET", "COSTGUARD_SLACK_TOKEN", "COSTGUARD_SMTP_PASSWORD", "COSTGUARD_WEBHOOK_SECRET",
  ]
  own_settings = ["COSTGUARD_ANSWER_URL", "COSTGUARD_AWS_ROLE", "COSTGUARD_LEDGER", "COSTGUARD_NAME", "COSTGUARD_POLICY", "COSTGUARD_REPORTS"]

  for_all = ["COSTGUARD_PAUSED"] # the kill switch reaches everything, whoever names it

  # What this deployment knows itself; each function gets what it reads.
  made_settings = merge(
    { COSTGUARD_NAME = var.name, COSTGUARD_POLICY = local.policy_source, COSTGUARD_LEDGER = local.ledger, COSTGUARD_REPORTS = local.reports },
    length(local.asked) > 0 ? { COSTGUARD_ANSWER_URL = local.answer_url } : {},
  )
  environment = {
    for name, reads in local.reads : name => merge(
      { for key, value in local.made_settings : key => value if contains(reads, key) },
      { for key, value in var.settings : key => value if contains(reads, key) || contains(local.for_all, key) || !contains(local.known_settings, key) },
      { for key, at in var.secrets : key => "secret:${at}" if contains(reads, key) },
      contains(reads, "COSTGUARD_AWS_ROLE") && local.has_members ? { COSTGUARD_AWS_ROLE = "${var.member_role}-${name}" } : {},
    )
  }
}

resource "aws_cloudwatch_log_group" "function" {
  for_each = local.functions

  name              = "/aws/lambda/${var.name}-${each.key}"
  retention_in_days = var.log_retention_days
  kms_key_id        = var.log_key_arn == "" ? null : var.log_key_arn
}

resource "aws_lambda_function" "function" {
  for_each = local.functions

  function_name = "${var.name}-${each.key}"
  description   = "Costguard: ${each.key}"
  role          = aws_iam_role.function[each.key].arn

  filename         = "${var.bundles}/${each.key}.zip"
  source_code_hash = try(filebase64sha256("${var.bundles}/${each.key}.zip"), null)
  handler          = "handler.handler"
  runtime          = "python3.13"
  architectures    = [var.architecture]
  memory_size      = each.value.memory_mib
  timeout          = each.value.timeout_seconds

  # A second run of the same guard waits in Lambda's own queue. Answers to people never wait.
  reserved_concurrent_executions = contains(keys(local.timed), each.key) ? var.reserved_concurrency : -1

  environment {
    variables = local.environment[each.key]
  }

  dead_letter_config {
    target_arn = aws_sqs_queue.dead_letters.arn
  }

  logging_config {
    log_format = "Text" # lines are JSON already, the same on every host
    log_group  = aws_cloudwatch_log_group.function[each.key].name
  }

  depends_on = [aws_iam_role_policy.platform, aws_iam_role_policy_attachment.function, aws_iam_role_policy_attachment.members]

  lifecycle {
    precondition {
      condition     = fileexists("${var.bundles}/${each.key}.zip")
      error_message = "${var.bundles}/${each.key}.zip is not there; make it with `costguard bundle lambda --out build`."
    }
    precondition {
      condition     = length(setsubtract(each.value.needs.settings.required, keys(local.environment[each.key]))) == 0
      error_message = "${each.key} needs ${join(", ", setsubtract(each.value.needs.settings.required, keys(local.environment[each.key])))}: name the secret that holds it in `secrets`, or leave the function out of `functions`."
    }
  }
}

# A failed run is tried twice more with the same event, hence under the same run id; after an hour the next run has come.
resource "aws_lambda_function_event_invoke_config" "timed" {
  for_each = local.timed

  function_name                = aws_lambda_function.function[each.key].function_name
  maximum_retry_attempts       = 2
  maximum_event_age_in_seconds = 3600

  dynamic "destination_config" {
    for_each = contains(local.beats_itself, each.key) ? [local.bus] : []

    content {
      on_success {
        destination = destination_config.value
      }
    }
  }

  depends_on = [aws_iam_role_policy.platform]
}

# Events that could not be delivered or run; the alarm on it says look, the log says why.
resource "aws_sqs_queue" "dead_letters" {
  name                      = "${var.name}-dead-letters"
  message_retention_seconds = 14 * 24 * 3600
  sqs_managed_sse_enabled   = true
}

resource "aws_sqs_queue_policy" "dead_letters" {
  queue_url = aws_sqs_queue.dead_letters.url
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid       = "OnlyOverTls"
      Effect    = "Deny"
      Principal = "*"
      Action    = "sqs:*"
      Resource  = aws_sqs_queue.dead_letters.arn
      Condition = { Bool = { "aws:SecureTransport" = "false" } }
    }]
  })
}
