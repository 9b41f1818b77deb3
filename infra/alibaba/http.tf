# Where Slack's clicks and Keep links arrive. There is no sign-in, because Slack cannot: every request proves itself
# (docs/answers.md). FC makes browsers download what this address answers; for Keep pages bind a domain of your own.

locals {
  answer_url      = length(local.asked) == 0 ? "" : one(values(alicloud_fcv3_trigger.answers)).http_trigger[0].url_internet
  told_answer_url = { for name, reads in local.reads : name => contains(reads, "COSTGUARD_ANSWER_URL") && length(local.asked) > 0 ? { COSTGUARD_ANSWER_URL = local.answer_url } : {} }
}

resource "alicloud_fcv3_trigger" "answers" {
  for_each = local.asked

  function_name = alicloud_fcv3_function.asked[each.key].function_name
  trigger_name  = "answers"
  trigger_type  = "http"
  description   = "Answers to Costguard's notices"
  qualifier     = "LATEST"

  trigger_config = jsonencode({ authType = "anonymous", methods = ["GET", "POST"] })
}
