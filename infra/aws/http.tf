# Where Slack's clicks and Keep links arrive: an HTTP API, which hands over what a function URL would (payload 2.0).
#
# Not a function URL: its address is known only after the function exists, which then cannot be told its own address;
# and it takes `lambda:InvokeFunction` for everybody. Here nobody but this API may call the function, and it is paced.
# There is no sign-in, because Slack cannot: every request proves itself (docs/answers.md).

locals {
  answer_url = length(local.asked) == 0 ? "" : one(values(aws_apigatewayv2_api.answers)).api_endpoint
}

resource "aws_apigatewayv2_api" "answers" {
  for_each = local.asked

  name          = "${var.name}-${each.key}"
  description   = "Answers to Costguard's notices"
  protocol_type = "HTTP"
}

resource "aws_apigatewayv2_integration" "answers" {
  for_each = local.asked

  api_id                 = aws_apigatewayv2_api.answers[each.key].id
  integration_type       = "AWS_PROXY"
  integration_uri        = aws_lambda_function.function[each.key].invoke_arn
  payload_format_version = "2.0"
  timeout_milliseconds   = 29000
}

# What the function answers, and nothing else reaches it.
resource "aws_apigatewayv2_route" "answers" {
  for_each = { for pair in setproduct(keys(local.asked), ["POST /slack", "GET /keep", "POST /keep"]) : join(" ", pair) => { function = pair[0], route = pair[1] } }

  api_id             = aws_apigatewayv2_api.answers[each.value.function].id
  route_key          = each.value.route
  authorization_type = "NONE"
  target             = "integrations/${aws_apigatewayv2_integration.answers[each.value.function].id}"
}

resource "aws_apigatewayv2_stage" "answers" {
  for_each = local.asked

  api_id      = aws_apigatewayv2_api.answers[each.key].id
  name        = "$default"
  auto_deploy = true

  default_route_settings {
    throttling_burst_limit = 20
    throttling_rate_limit  = 10
  }

  # No path and no query: a Keep link's token stands there.
  access_log_settings {
    destination_arn = aws_cloudwatch_log_group.answers[each.key].arn
    format = jsonencode({
      request_id = "$context.requestId", time = "$context.requestTime", route = "$context.routeKey",
      status     = "$context.status", milliseconds = "$context.responseLatency", error = "$context.error.message"
    })
  }
}

resource "aws_cloudwatch_log_group" "answers" {
  for_each = local.asked

  name              = "/aws/vendedlogs/apigateway/${var.name}-${each.key}" # else each API makes a shared permission longer
  retention_in_days = var.log_retention_days
  kms_key_id        = var.log_key_arn == "" ? null : var.log_key_arn
}

resource "aws_lambda_permission" "answers" {
  for_each = local.asked

  statement_id  = "OnlyByItsApi"
  action        = "lambda:InvokeFunction"
  function_name = aws_lambda_function.function[each.key].function_name
  principal     = "apigateway.amazonaws.com"
  source_arn    = "${aws_apigatewayv2_api.answers[each.key].execution_arn}/*/*"
}
