mock_data "aws_caller_identity" {
  defaults = { account_id = "111122223333" }
}

mock_data "aws_partition" {
  defaults = { partition = "aws" }
}

mock_data "aws_secretsmanager_secret" {
  defaults = { arn = "arn:aws:secretsmanager:us-east-1:111122223333:secret:costguard/made-up-a1b2c3" }
}

mock_resource "aws_iam_role" {
  defaults = { arn = "arn:aws:iam::111122223333:role/made-up" }
}

mock_resource "aws_iam_policy" {
  defaults = { arn = "arn:aws:iam::111122223333:policy/made-up" }
}

mock_resource "aws_lambda_function" {
  defaults = {
    arn        = "arn:aws:lambda:us-east-1:111122223333:function:made-up"
    invoke_arn = "arn:aws:apigateway:us-east-1:lambda:path/2015-03-31/functions/made-up/invocations"
  }
}

mock_resource "aws_sqs_queue" {
  defaults = {
    arn = "arn:aws:sqs:us-east-1:111122223333:made-up"
    url = "https://sqs.us-east-1.amazonaws.com/111122223333/made-up"
  }
}

mock_resource "aws_sns_topic" {
  defaults = { arn = "arn:aws:sns:us-east-1:111122223333:made-up" }
}

mock_resource "aws_dynamodb_table" {
  defaults = { arn = "arn:aws:dynamodb:us-east-1:111122223333:table/costguard-ledger" }
}

mock_resource "aws_s3_bucket" {
  defaults = { arn = "arn:aws:s3:::costguard-111122223333-us-east-1" }
}

mock_resource "aws_cloudwatch_log_group" {
  defaults = { arn = "arn:aws:logs:us-east-1:111122223333:log-group:made-up" }
}

mock_resource "aws_scheduler_schedule_group" {
  defaults = { arn = "arn:aws:scheduler:us-east-1:111122223333:schedule-group/costguard" }
}

mock_resource "aws_apigatewayv2_api" {
  defaults = {
    id            = "made-up"
    api_endpoint  = "https://made-up.execute-api.us-east-1.amazonaws.com"
    execution_arn = "arn:aws:execute-api:us-east-1:111122223333:made-up"
  }
}

mock_resource "aws_cloudwatch_event_connection" {
  defaults = { arn = "arn:aws:events:us-east-1:111122223333:connection/costguard-heartbeat/00000000-0000-0000-0000-000000000000" }
}

mock_resource "aws_cloudwatch_event_api_destination" {
  defaults = { arn = "arn:aws:events:us-east-1:111122223333:api-destination/costguard-heartbeat/00000000-0000-0000-0000-000000000000" }
}

mock_resource "aws_sfn_state_machine" {
  defaults = { arn = "arn:aws:states:us-east-1:111122223333:stateMachine:costguard-organisation" }
}
