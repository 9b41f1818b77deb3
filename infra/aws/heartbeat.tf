# A heartbeat for somebody who watches from elsewhere: each run of idle_gpu that ended well calls `heartbeat_url`.
# It tells what the dead-man's switch cannot: that the whole account or region is silent. Where idle_gpu runs in phases
# (`distributed`), the run is its state machine's.

variable "heartbeat_url" {
  description = "An https address that is called after each run of idle_gpu; who serves it misses the call. It stands in the state: take one that can only be pinged."
  type        = string
  default     = ""

  validation {
    condition     = var.heartbeat_url == "" || can(regex("^https://[^\\s*]+$", var.heartbeat_url))
    error_message = "An address that begins with https://."
  }
}

locals {
  # A function tells EventBridge of its own success; Step Functions does so by itself (its guide, "Automating Step
  # Functions event delivery with EventBridge"). Children of a map have another ARN, with the map's label behind.
  beats_itself = var.distributed ? [] : keys(local.beating)
  beat = {
    function = {
      source        = ["lambda"]
      "detail-type" = ["Lambda Function Invocation Result - Success"]
      detail        = { requestContext = { functionArn = [for name in local.beats_itself : { prefix = aws_lambda_function.function[name].arn }] } }
    }
    phases = {
      source        = ["aws.states"]
      "detail-type" = ["Step Functions Execution Status Change"]
      detail        = { status = ["SUCCEEDED"], stateMachineArn = [for machine in aws_sfn_state_machine.organisation : machine.arn] }
    }
  }

  beating = { for name in ["idle_gpu"] : name => var.heartbeat_url if var.heartbeat_url != "" && contains(keys(local.timed), name) }
  bus     = "arn:${local.partition}:events:${var.region}:${local.account}:event-bus/default"
}

# EventBridge sends no request without a connection; it asks for some header, and this one is no secret.
resource "aws_cloudwatch_event_connection" "heartbeat" {
  for_each = local.beating

  name               = "${var.name}-heartbeat"
  authorization_type = "API_KEY"

  auth_parameters {
    api_key {
      key   = "X-Costguard"
      value = var.name
    }
  }
}

resource "aws_cloudwatch_event_api_destination" "heartbeat" {
  for_each = local.beating

  name                             = "${var.name}-heartbeat"
  connection_arn                   = aws_cloudwatch_event_connection.heartbeat[each.key].arn
  invocation_endpoint              = each.value
  http_method                      = "POST"
  invocation_rate_limit_per_second = 1
}

resource "aws_cloudwatch_event_rule" "heartbeat" {
  for_each = local.beating

  name          = "${var.name}-heartbeat"
  description   = "A run of Costguard's ${each.key} ended well"
  event_pattern = var.distributed ? jsonencode(local.beat.phases) : jsonencode(local.beat.function)
}

resource "aws_cloudwatch_event_target" "heartbeat" {
  for_each = local.beating

  rule     = aws_cloudwatch_event_rule.heartbeat[each.key].name
  arn      = aws_cloudwatch_event_api_destination.heartbeat[each.key].arn
  role_arn = aws_iam_role.heartbeat[each.key].arn
  input    = jsonencode({ costguard = "ran" }) # not what the run found

  retry_policy {
    maximum_event_age_in_seconds = 3600
    maximum_retry_attempts       = 3
  }
}

resource "aws_iam_role" "heartbeat" {
  for_each = local.beating

  name        = "${var.name}-heartbeat"
  description = "EventBridge calls the heartbeat's address with it"

  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { Service = "events.amazonaws.com" }
      Action    = "sts:AssumeRole"
      Condition = { StringEquals = { "aws:SourceAccount" = local.account } }
    }]
  })
}

resource "aws_iam_role_policy" "heartbeat" {
  for_each = local.beating

  name = "call"
  role = aws_iam_role.heartbeat[each.key].id
  policy = jsonencode({
    Version   = "2012-10-17"
    Statement = [{ Effect = "Allow", Action = "events:InvokeApiDestination", Resource = aws_cloudwatch_event_api_destination.heartbeat[each.key].arn }]
  })
}
