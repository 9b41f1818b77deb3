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
  description = "The folder that `costguard bundle fc` wrote, holding FUNCTION.zip."
  type        = string
  default     = "../../build/fc"
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
  description = "Further accounts to guard, by id. Each has the roles of infra/alibaba/member."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for id in var.member_accounts : can(regex("^[0-9]{10,20}$", id))])
    error_message = "An account id has 16 digits; put it in quotes."
  }
}

variable "member_role" {
  description = "What the roles in member accounts are named: this, a hyphen and the function, whose underscores are hyphens too."
  type        = string
  default     = "costguard-member"

  validation {
    condition     = can(regex("^[A-Za-z0-9.-]{1,48}$", var.member_role))
    error_message = "A role's name, at most 48 letters: the function's is added to it."
  }
}

variable "secrets" {
  description = "COSTGUARD_… setting → name of a secret in KMS Secrets Manager, or NAME#KEY for one field of it. Values never come here."
  type        = map(string)
  default     = {}

  validation {
    condition     = alltrue([for name in keys(var.secrets) : can(regex("^COSTGUARD_[A-Z_]+$", name))])
    error_message = "Keys are settings, COSTGUARD_…."
  }

  validation {
    condition     = alltrue([for at in values(var.secrets) : can(regex("^[A-Za-z0-9/_+=.@-]{1,64}(#[A-Za-z0-9_.-]{1,128})?$", at))])
    error_message = "Values are names in KMS Secrets Manager, such as costguard/slack-token or costguard/slack#token."
  }

  validation {
    condition     = alltrue([for at in values(var.secrets) : !can(regex("^(xox|xapp|Bearer|SEC[0-9a-f]{8})", at))])
    error_message = "This looks like a secret itself. Put it into KMS Secrets Manager, and its name here."
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
  description = "Who is mailed when Costguard fails; they confirm a mail from the cloud first. Empty: nobody."
  type        = string
  default     = ""
}

variable "log_retention_days" {
  description = "How long log lines are kept."
  type        = number
  default     = 90

  validation {
    condition     = var.log_retention_days == floor(var.log_retention_days) && var.log_retention_days >= 1 && var.log_retention_days <= 3650
    error_message = "SLS keeps for 1 to 3650 days; 3650 is for ever."
  }
}

variable "tags" {
  description = "Tags on everything, beside `app` and `deployment`."
  type        = map(string)
  default     = {}
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

variable "grants" {
  description = "Purposes that only some policies ask for, where `enforce`: succeed, keep_tag, start, freeze, freeze-organisation."
  type        = set(string)
  default     = []

  validation {
    condition     = length(setsubtract(var.grants, ["succeed", "keep_tag", "start", "freeze", "freeze-organisation"])) == 0
    error_message = "succeed, keep_tag, start, freeze or freeze-organisation. RAM narrows the last to no policy: only the session of a freeze does."
  }
}

variable "organisation_id" {
  description = "Guard accounts of this Alibaba Cloud resource directory, rd-…, however many: each has the roles of infra/alibaba/member. RAM cannot hold a role to one organisation, so that the policy and the members' trust do. Empty: those of `member_accounts` alone."
  type        = string
  default     = ""

  validation {
    condition     = var.organisation_id == "" || can(regex("^rd-[0-9A-Za-z]{4,32}$", var.organisation_id))
    error_message = "An organisation's id, such as rd-Ab12Cd."
  }
}

# What only Alibaba Cloud has.

variable "alert_region" {
  description = "Where SLS keeps who is notified: cn-heyuan of the China site, ap-southeast-1 of the international one."
  type        = string
  default     = "cn-heyuan"
}

variable "desk_networks" {
  description = "Networks that may reach the ledger from outside while people publish policies or ask after cases; empty: none."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for network in var.desk_networks : can(cidrhost(network, 0)) && tonumber(try(split("/", network)[1], 0)) >= 24])
    error_message = "Your own addresses, such as 203.0.113.7/32: nothing wider than /24."
  }
}

variable "secret_store" {
  description = "Where `secrets` are kept: kms, whose instance costs some 150 USD a month; or bucket, objects secrets/NAME of this deployment's own, without a key of yours, a log of each reading, and rotation."
  type        = string
  default     = "kms"

  validation {
    condition     = contains(["kms", "bucket"], var.secret_store)
    error_message = "kms or bucket."
  }
}

variable "secret_keys" {
  description = "The ids of the KMS keys that encrypt those secrets: whoever reads a secret must be able to use its key."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for id in var.secret_keys : can(regex("^[A-Za-z0-9-]{8,64}$", id))])
    error_message = "Ids of keys, such as key-hzz62f1cb66fa42qo0000."
  }
}
