# Five cron fields in UTC (minute hour day month weekday) → each host's own form. Needs no provider.
#
# Every field becomes `*` or a list, and weekdays become names: steps, `?` and the numbers of weekdays differ by vendor
# (EventBridge counts from 1 for Sunday, FC from 1 for Monday, SCF from 0 for Sunday); lists and names mean the same.
# What a host cannot say is refused, never rounded: a missed hour would be a run that nobody asked about.

terraform {
  required_version = ">= 1.9"
}

variable "five" {
  description = "Any key → five cron fields in UTC, such as 17 * * * *. Numbers, lists, ranges and steps; no names."
  type        = map(string)
}

variable "scf_hours_ahead" {
  description = "How far the clock that SCF reads its timers by is ahead of UTC: Beijing's, 8 hours."
  type        = number
  default     = 8

  validation {
    condition     = contains(range(0, 24), var.scf_hours_ahead)
    error_message = "Whole hours from 0 to 23."
  }
}

locals {
  bounds = [[0, 59], [0, 23], [1, 31], [1, 12], [0, 7]] # 7 is Sunday as well as 0
  part   = "^(\\*|[0-9]{1,2}|[0-9]{1,2}-[0-9]{1,2})$|^(\\*|[0-9]{1,2}-[0-9]{1,2})/[1-9][0-9]?$"
  days   = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]

  fields = { for key, text in var.five : key => split(" ", text) }

  # For each part of each field: first, last, step; null where it is none.
  spans = {
    for key, fields in local.fields : key => [
      for i, bounds in local.bounds : [
        for part in split(",", try(fields[i], "")) : !can(regex(local.part, part)) ? null : {
          first = startswith(part, "*") ? bounds[0] : tonumber(regex("^[0-9]+", part))
          last  = startswith(part, "*") ? (i == 4 ? 6 : bounds[1]) : tonumber(regex("-?([0-9]+)(?:/|$)", part)[0])
          step  = try(tonumber(regex("/([0-9]+)$", part)[0]), 1)
        }
      ]
    ]
  }
  wrong = {
    for key, fields in local.fields : key => (
      length(fields) != 5 ? "it has ${length(fields)} fields" :
      anytrue([for i, bounds in local.bounds : anytrue([
        for span in local.spans[key][i] : span == null ? true : span.first > span.last || span.first < bounds[0] || span.last > bounds[1]
      ])]) ? "a field has what cron does not know, or a number outside its bounds" :
      fields[2] != "*" && fields[4] != "*" ? "it names days of the month and of the week; hosts differ on which counts" : ""
    )
  }

  # The numbers that each field stands for; weekdays from 0 for Sunday.
  numbers = {
    for key, spans in local.spans : key => [
      for i, of_field in spans : [
        for n in [range(0, 60), range(0, 24), range(1, 32), range(1, 13), range(0, 7)][i] : n
        if anytrue([for span in of_field : span == null ? false : anytrue([
          for m in i == 4 && n == 0 ? [0, 7] : [n] : m >= span.first && m <= span.last && (m - span.first) % span.step == 0
        ])])
      ]
    ] if local.wrong[key] == ""
  }
  texts = {
    for key, numbers in local.numbers : key => [
      for i, of_field in numbers : length(of_field) == [60, 24, 31, 12, 7][i] ? "*" :
      join(",", [for n in of_field : i == 4 ? local.days[n] : tostring(n)])
    ]
  }
  every_day = { for key, text in local.texts : key => text[2] == "*" && text[3] == "*" && text[4] == "*" }

  # SCF's clock: hours wrap at midnight, and with them the day. A day can follow only where all hours pass midnight.
  later = {
    for key, numbers in local.numbers : key => {
      hours    = [for hour in range(0, 24) : hour if contains(numbers[1], (hour - var.scf_hours_ahead + 24) % 24)]
      next_day = [for hour in numbers[1] : hour + var.scf_hours_ahead >= 24]
    }
  }
  scf_wrong = {
    for key, text in local.texts : key => (
      local.every_day[key] || !anytrue(local.later[key].next_day) ? "" :
      !alltrue(local.later[key].next_day) ? "its hours fall on two days of SCF's clock, which is ${var.scf_hours_ahead} h ahead of UTC" :
      text[2] != "*" || text[3] != "*" ? "its day of the month is another one by SCF's clock, ${var.scf_hours_ahead} h ahead of UTC" : ""
    )
  }
  scf_days = {
    for key, text in local.texts : key => text[4] == "*" ? "*" : join(",", [
      for n in range(0, 7) : local.days[n] if contains(local.numbers[key][4], alltrue(local.later[key].next_day) ? (n + 6) % 7 : n)
    ])
  }
}

output "aws" {
  description = "Key → cron(…) for EventBridge, to be read in UTC."
  value = {
    for key, text in local.texts : key => format(
      "cron(%s %s %s %s %s *)", text[0], text[1],
      text[4] == "*" ? text[2] : "?", text[3], text[4] == "*" ? "?" : text[4]
    )
  }

  precondition {
    condition     = alltrue([for wrong in values(local.wrong) : wrong == ""])
    error_message = join("; ", [for key, wrong in local.wrong : "${key}: \"${var.five[key]}\" is no schedule: ${wrong}" if wrong != ""])
  }
  precondition {
    condition     = alltrue([for key, text in local.texts : length(join(" ", text)) < 240])
    error_message = "A schedule is too long for EventBridge, which takes 256 letters."
  }
}

output "fc" {
  description = "Key → six fields for a timer trigger of Function Compute, which reads them in UTC."
  value       = { for key, text in local.texts : key => join(" ", concat(["0"], text)) }

  precondition {
    condition     = alltrue([for wrong in values(local.wrong) : wrong == ""])
    error_message = join("; ", [for key, wrong in local.wrong : "${key}: \"${var.five[key]}\" is no schedule: ${wrong}" if wrong != ""])
  }
}

output "scf" {
  description = "Key → seven fields for a timer trigger of SCF, which reads them by its own clock."
  value = {
    for key, text in local.texts : key => format(
      "0 %s %s %s %s %s *", text[0],
      length(local.later[key].hours) == 24 ? "*" : join(",", local.later[key].hours), text[2], text[3], local.scf_days[key]
    ) if local.scf_wrong[key] == ""
  }

  precondition {
    condition     = alltrue([for wrong in values(merge(local.wrong, local.scf_wrong)) : wrong == ""])
    error_message = join("; ", [for key, wrong in merge(local.wrong, local.scf_wrong) : "${key}: \"${var.five[key]}\" cannot be said to SCF: ${wrong}" if wrong != ""])
  }
}

output "longest_gap_hours" {
  description = "Key → hours between two starts at most; a month is 31 days. What names months is in no output: nobody waits a year."
  value = {
    for key, text in local.texts : key => (
      text[2] != "*" ? 31 * 24 :
      text[4] != "*" ? 24 * max([
        for i, day in local.numbers[key][4] : i + 1 < length(local.numbers[key][4]) ? local.numbers[key][4][i + 1] - day : local.numbers[key][4][0] + 7 - day
      ]...) :
      max([
        for i, hour in local.numbers[key][1] : i + 1 < length(local.numbers[key][1]) ? local.numbers[key][1][i + 1] - hour : local.numbers[key][1][0] + 24 - hour
      ]...)
    ) if text[3] == "*"
  }
}
