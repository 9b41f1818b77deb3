variable "name" {
  description = "What every resource's name begins with; another deployment in the same account takes another."
  type        = string
  default     = "costguard"

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{1,18}[a-z0-9]$", var.name))
    error_message = "3 to 20 small letters, digits and hyphens, beginning with a letter: buckets and roles carry it."
  }
}

variable "region" {
  description = "Where Costguard itself runs. Which regions it guards is said in the policy."
  type        = string
}

variable "bundles" {
  description = "The folder that `costguard bundle lambda` wrote, holding FUNCTION.zip."
  type        = string
  default     = "../../build/lambda"
}

variable "functions" {
  description = "Which functions to deploy; null: all in functions/."
  type        = set(string)
  default     = null

  validation {
    condition     = var.functions == null ? true : length(setsubtract(var.functions, keys(local.known))) == 0
    error_message = "There is no such function; those there are: ${join(", ", keys(local.known))}."
  }
}

variable "enforce" {
  description = "Grant what acting takes. Without it the roles cannot change anything, whatever the policy says."
  type        = bool
  default     = false
}

variable "schedules" {
  description = "Function → five cron fields in UTC, in place of those in its function.yaml."
  type        = map(string)
  default     = {}

  validation {
    condition     = length(setsubtract(keys(var.schedules), keys(local.timed))) == 0
    error_message = "Only deployed functions with a schedule can have another: ${join(", ", keys(local.timed))}."
  }
}

variable "member_accounts" {
  description = "Further accounts to guard, by id. Each has the roles of infra/aws/member."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for id in var.member_accounts : can(regex("^[0-9]{12}$", id))])
    error_message = "An account id has 12 digits; put it in quotes, so that a leading 0 stays."
  }
}

variable "member_role" {
  description = "What the roles in member accounts are named: this, a hyphen and the function."
  type        = string
  default     = "costguard-member"

  validation {
    condition     = can(regex("^[A-Za-z0-9+=,.@_-]{1,48}$", var.member_role))
    error_message = "A role's name, at most 48 letters: the function's is added to it."
  }
}

variable "secrets" {
  description = "COSTGUARD_… setting → name of a secret in Secrets Manager, or NAME#KEY for one field of it. Values never come here."
  type        = map(string)
  default     = {}

  validation {
    condition     = alltrue([for name in keys(var.secrets) : can(regex("^COSTGUARD_[A-Z_]+$", name))])
    error_message = "Keys are settings, COSTGUARD_…."
  }

  validation {
    condition     = alltrue([for at in values(var.secrets) : can(regex("^[A-Za-z0-9/_+=.@-]{1,512}(#[A-Za-z0-9_.-]{1,128})?$", at))])
    error_message = "Values are names in Secrets Manager, such as costguard/slack-token or costguard/slack#token."
  }

  validation {
    condition     = alltrue([for at in values(var.secrets) : !can(regex("^(xox|xapp|Bearer|SEC[0-9a-f]{8})", at))])
    error_message = "This looks like a secret itself. Put it into Secrets Manager, and its name here."
  }

  validation {
    condition     = alltrue([for name in keys(var.secrets) : contains(local.known_settings, name)])
    error_message = "No deployed function reads such a setting (functions/*/function.yaml)."
  }
}

variable "settings" {
  description = "Further COSTGUARD_… settings; a function gets those its function.yaml names, and those none names."
  type        = map(string)
  default     = {}

  validation {
    condition     = alltrue([for name in keys(var.settings) : can(regex("^COSTGUARD_[A-Z_]+$", name))])
    error_message = "Keys are settings, COSTGUARD_…."
  }

  validation {
    condition     = length(setintersection(keys(var.settings), local.secret_settings)) == 0
    error_message = "Secrets go by name, in `secrets`: ${join(", ", setintersection(keys(var.settings), local.secret_settings))}."
  }

  validation {
    condition     = length(setintersection(keys(var.settings), local.own_settings)) == 0
    error_message = "Terraform sets these itself: ${join(", ", local.own_settings)}."
  }

  validation {
    condition     = contains(["DEBUG", "INFO"], upper(lookup(var.settings, "COSTGUARD_LOG_LEVEL", "INFO")))
    error_message = "COSTGUARD_LOG_LEVEL is INFO or DEBUG here: alarms read lines of that level."
  }
}

variable "alarm_mail" {
  description = "Who is mailed when Costguard fails; they confirm a mail from AWS first. Empty: nobody."
  type        = string
  default     = ""
}

variable "log_retention_days" {
  description = "How long log lines are kept."
  type        = number
  default     = 90

  validation {
    condition     = contains([1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653], var.log_retention_days)
    error_message = "CloudWatch Logs keeps for 1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288 or 3653 days."
  }
}

variable "tags" {
  description = "Tags on everything, beside `app` and `deployment`."
  type        = map(string)
  default     = {}
}

# What only AWS has.

variable "architecture" {
  description = "What the bundles were made for: x86_64 or arm64."
  type        = string
  default     = "x86_64"

  validation {
    condition     = contains(["x86_64", "arm64"], var.architecture)
    error_message = "x86_64 or arm64."
  }
}

variable "reserved_concurrency" {
  description = "How many runs of one scheduled function may go on at once; -1 for accounts too new to reserve any."
  type        = number
  default     = 1

  validation {
    condition     = contains([1, -1], var.reserved_concurrency)
    error_message = "1, so that runs never overlap, or -1: then the ledger alone keeps two runs apart. 0 would stop all."
  }
}

variable "log_key_arn" {
  description = "A KMS key for the log groups; its policy must let logs.REGION.amazonaws.com use it. Empty: AWS's own."
  type        = string
  default     = ""
}

variable "dead_man_mail" {
  description = "Who is mailed when Costguard has not run at all; best others than `alarm_mail`. Empty: the same."
  type        = string
  default     = ""
}

variable "deletion_protection" {
  description = "Keep the ledger and the policy bucket from being destroyed; false, applied, is the first step of removing them."
  type        = bool
  default     = true
}

variable "ledger_backup" {
  description = "Keep backups of the ledger by which it can be put back as it was at any second of the last 35 days; paid by its size. Without them what is lost or overwritten stays so, and every wait begins anew."
  type        = bool
  default     = true
}

variable "grants" {
  description = "Purposes that only some policies ask for, where `enforce`: succeed, keep_tag, start, freeze, freeze-organisation."
  type        = set(string)
  default     = []

  validation {
    condition     = length(setsubtract(var.grants, ["succeed", "keep_tag", "start", "freeze", "freeze-organisation"])) == 0
    error_message = "succeed, keep_tag, start, freeze or freeze-organisation."
  }

  validation {
    condition     = contains(var.grants, "freeze-organisation") == (length(var.freeze_policies) > 0)
    error_message = "freeze-organisation and `freeze_policies` go together: the role may attach just those policies."
  }
}

variable "freeze_policies" {
  description = "The service control policies that launch freezes attach, by their ids, p-…; `grants` has freeze-organisation with them."
  type        = set(string)
  default     = []

  validation {
    condition     = alltrue([for id in var.freeze_policies : can(regex("^p-[0-9a-z]{8,128}$", id))])
    error_message = "The id that Organizations gave a policy people wrote, such as p-a1b2c3d4; AWS's own have capitals."
  }
}

variable "organisation_id" {
  description = "Guard accounts of this AWS organisation, o-…, however many: each has the roles of infra/aws/member. Empty: those of `member_accounts` alone."
  type        = string
  default     = ""

  validation {
    condition     = var.organisation_id == "" || can(regex("^o-[a-z0-9]{10,32}$", var.organisation_id))
    error_message = "An organisation's id, such as o-a1b2c3d4e5: `aws organizations describe-organization` tells it."
  }
}
