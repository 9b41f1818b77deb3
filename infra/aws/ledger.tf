# What Costguard remembers (docs/ledger.md). Records are kept for good: nothing in the table ends by itself, so no TTL.

locals {
  ledger_table = "${var.name}-ledger"
  ledger       = "dynamodb://${local.ledger_table}?region=${var.region}"
}

resource "aws_dynamodb_table" "ledger" {
  name         = local.ledger_table
  billing_mode = "PAY_PER_REQUEST"
  hash_key     = "kind"
  range_key    = "key"

  deletion_protection_enabled = var.deletion_protection

  attribute {
    name = "kind"
    type = "S"
  }

  attribute {
    name = "key"
    type = "S"
  }

  point_in_time_recovery {
    enabled = var.ledger_backup
  }

  server_side_encryption {
    enabled = true
  }
}
