# The schedules of functions/*/function.yaml and the forms at their edges. Run: terraform test

run "function_yaml" {
  command = plan

  variables {
    five = {
      idle_gpu = "17 * * * *"
      keys     = "23 5 * * *"
      digest   = "11 1 * * 1"
    }
  }

  assert {
    condition     = output.aws == { idle_gpu = "cron(17 * * * ? *)", keys = "cron(23 5 * * ? *)", digest = "cron(11 1 ? * MON *)" }
    error_message = "EventBridge: ${jsonencode(output.aws)}"
  }
  assert {
    condition     = output.fc == { idle_gpu = "0 17 * * * *", keys = "0 23 5 * * *", digest = "0 11 1 * * MON" }
    error_message = "Function Compute: ${jsonencode(output.fc)}"
  }
  assert {
    condition     = output.scf == { idle_gpu = "0 17 * * * * *", keys = "0 23 13 * * * *", digest = "0 11 9 * * MON *" }
    error_message = "SCF: ${jsonencode(output.scf)}"
  }
  assert {
    condition     = output.longest_gap_hours == { idle_gpu = 1, keys = 24, digest = 168 }
    error_message = "Gaps: ${jsonencode(output.longest_gap_hours)}"
  }
}

run "a_day_later_by_the_clock_of_scf" {
  command = plan

  variables {
    five = {
      weekdays = "30 18,20 * * 1-5"
      sunday   = "0 20 * * 7"
      all_week = "0 */6 * * 0-6"
      nights   = "5,35 22-23 * * *"
    }
  }

  assert {
    condition = output.scf == {
      weekdays = "0 30 2,4 * * TUE,WED,THU,FRI,SAT *"
      sunday   = "0 0 4 * * MON *"
      all_week = "0 0 2,8,14,20 * * * *"
      nights   = "0 5,35 6,7 * * * *"
    }
    error_message = "SCF: ${jsonencode(output.scf)}"
  }
  assert {
    condition     = output.fc.weekdays == "0 30 18,20 * * MON,TUE,WED,THU,FRI" && output.fc.sunday == "0 0 20 * * SUN"
    error_message = "Function Compute: ${jsonencode(output.fc)}"
  }
  assert {
    condition     = output.longest_gap_hours == { weekdays = 72, sunday = 168, all_week = 6, nights = 23 }
    error_message = "Gaps: ${jsonencode(output.longest_gap_hours)}"
  }
}

run "days_of_the_month" {
  command = plan

  variables {
    five = { first = "0 9 1 * *", spring = "*/20 1 * 3,4 *" }
  }

  assert {
    condition     = output.scf == { first = "0 0 17 1 * * *", spring = "0 0,20,40 9 * 3,4 * *" }
    error_message = "SCF: ${jsonencode(output.scf)}"
  }
  assert {
    condition     = output.aws.first == "cron(0 9 1 * ? *)" && output.longest_gap_hours == { first = 744 }
    error_message = "EventBridge: ${jsonencode(output.aws)}"
  }
}

run "hours_on_two_days_cannot_be_said_to_scf" {
  command = plan

  variables {
    five = { split = "0 9,20 * * 1" }
  }

  expect_failures = [output.scf]
}

run "the_last_of_a_month_cannot_be_said_to_scf" {
  command = plan

  variables {
    five = { late = "0 20 28 * *" }
  }

  expect_failures = [output.scf]
}

run "what_is_no_schedule_is_refused" {
  command = plan

  variables {
    five = { six = "0 17 * * * *", far = "60 * * * *", both = "0 9 1 * 1", named = "0 9 * * MON" }
  }

  expect_failures = [output.aws, output.fc, output.scf]
}
