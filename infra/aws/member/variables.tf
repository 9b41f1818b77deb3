variable "hub_account" {
  description = "The account that Costguard runs in."
  type        = string

  validation {
    condition     = can(regex("^[0-9]{12}$", var.hub_account))
    error_message = "An account id has 12 digits; put it in quotes."
  }
}

variable "name" {
  description = "The deployment's `name`: its functions' roles begin with it."
  type        = string
  default     = "costguard"
}

variable "member_role" {
  description = "What the roles made here are named: this, a hyphen and the function; as the deployment's `member_role`."
  type        = string
  default     = "costguard-member"

  validation {
    condition     = can(regex("^[A-Za-z0-9+=,.@_-]{1,48}$", var.member_role))
    error_message = "A role's name, at most 48 letters: the function's is added to it."
  }
}

variable "external_id" {
  description = "What the deployment sends as COSTGUARD_AWS_EXTERNAL_ID. It is a name between the two, not a secret."
  type        = string

  validation {
    condition     = can(regex("^[A-Za-z0-9+=,.@:/_-]{2,128}$", var.external_id))
    error_message = "2 to 128 letters, digits and + = , . @ : / _ -."
  }
}

variable "acting" {
  description = "Grant what acting takes here. Without it Costguard reads this account and can change nothing in it."
  type        = bool
  default     = false
}

variable "grants" {
  description = "Purposes that only some policies ask for, where `acting`: succeed, keep_tag, start, freeze, freeze-organisation. As the deployment's `grants`."
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
  description = "Where freezes of the organisation are attached by this account: the service control policies, by their ids, p-…"
  type        = set(string)
  default     = []

  validation {
    condition     = alltrue([for id in var.freeze_policies : can(regex("^p-[0-9a-z]{8,128}$", id))])
    error_message = "The id that Organizations gave a policy people wrote, such as p-a1b2c3d4; AWS's own have capitals."
  }
}

variable "functions" {
  description = "Which functions may enter; null: all that read a cloud."
  type        = set(string)
  default     = null
}

variable "tags" {
  description = "Tags on the roles, beside `app`."
  type        = map(string)
  default     = {}
}
