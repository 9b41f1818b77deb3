variable "hub_account" {
  description = "The account that Costguard runs in."
  type        = string

  validation {
    condition     = can(regex("^[0-9]{10,20}$", var.hub_account))
    error_message = "An account id has 16 digits; put it in quotes."
  }
}

variable "name" {
  description = "The deployment's `name`: its functions' roles begin with it."
  type        = string
  default     = "costguard"
}

variable "member_role" {
  description = "What the roles made here are named: this, a hyphen and the function, whose underscores are hyphens too; as the deployment's `member_role`."
  type        = string
  default     = "costguard-member"

  validation {
    condition     = can(regex("^[A-Za-z0-9.-]{1,48}$", var.member_role))
    error_message = "A role's name, at most 48 letters: the function's is added to it."
  }
}

variable "external_id" {
  description = "What the deployment sends as COSTGUARD_ALIBABA_EXTERNAL_ID. It is a name between the two, not a secret."
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
