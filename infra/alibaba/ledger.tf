# What Costguard remembers (docs/ledger.md): PostgreSQL in a network of its own, which nothing outside it reaches.
# Policies are published into it from a desk: `desk_networks` lets that in for a while.
# Its account, with a password that no state ever holds, is made by hand once: docs/deploy-alibaba.md.

locals {
  network = "10.213.0.0/24" # peered with nothing

  zone = sort(tolist(setintersection(data.alicloud_db_zones.ledger.ids, data.alicloud_fc_zones.here.ids)))[0]

  # The address without its password.
  ledger = "postgresql://costguard@${alicloud_db_instance.ledger.connection_string}:${alicloud_db_instance.ledger.port}/${alicloud_db_database.ledger.data_base_name}"
}

data "alicloud_fc_zones" "here" {}

data "alicloud_db_zones" "ledger" {
  engine                   = "PostgreSQL"
  engine_version           = "14.0"
  instance_charge_type     = "Serverless"
  category                 = "serverless_basic"
  db_instance_storage_type = "cloud_essd"
}

resource "alicloud_vpc" "here" {
  vpc_name   = var.name
  cidr_block = local.network
  tags       = local.tags
}

resource "alicloud_vswitch" "here" {
  vpc_id       = alicloud_vpc.here.id
  vswitch_name = var.name
  cidr_block   = local.network
  zone_id      = local.zone
  tags         = local.tags

  lifecycle {
    ignore_changes = [zone_id] # where it was made: a zone that opens or closes moves no ledger
  }
}

# What the functions' network cards are in: nothing comes in, and what they ask goes out.
resource "alicloud_security_group" "functions" {
  security_group_name = "${var.name}-functions"
  description         = "Costguard's functions: nothing comes in"
  vpc_id              = alicloud_vpc.here.id
  inner_access_policy = "Drop"
  tags                = local.tags
}

# The smallest there is: half a capacity unit, awake all the time, one node. While it is away, runs fail and nothing is done.
resource "alicloud_db_instance" "ledger" {
  engine                   = "PostgreSQL"
  engine_version           = "14.0"
  category                 = "serverless_basic"
  instance_charge_type     = "Serverless"
  instance_type            = "pg.n2.serverless.1c"
  instance_storage         = 20
  db_instance_storage_type = "cloud_essd"
  instance_name            = "${var.name}-ledger"
  zone_id                  = alicloud_vswitch.here.zone_id
  vpc_id                   = alicloud_vpc.here.id
  vswitch_id               = alicloud_vswitch.here.id
  security_ips             = concat([local.network], var.desk_networks)
  deletion_protection      = var.deletion_protection
  tags                     = local.tags

  serverless_config {
    min_capacity = 0.5
    max_capacity = 2
  }

  lifecycle {
    ignore_changes = [instance_storage, zone_id] # storage grows by itself
  }
}

resource "alicloud_db_database" "ledger" {
  instance_id    = alicloud_db_instance.ledger.id
  data_base_name = "costguard"
  character_set  = "UTF8,C,en_US.utf8"
  description    = "Costguard's ledger"
}

resource "alicloud_db_backup_policy" "ledger" {
  instance_id             = alicloud_db_instance.ledger.id
  preferred_backup_period = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
  preferred_backup_time   = "18:00Z-19:00Z"
  backup_retention_period = 30
}

# From a desk, over TLS or not at all: docs/deploy-alibaba.md turns it on, and addresses given out here insist on it.
resource "alicloud_db_connection" "desk" {
  count = length(var.desk_networks) > 0 ? 1 : 0

  instance_id       = alicloud_db_instance.ledger.id
  connection_prefix = "${replace(var.name, "-", "")}${substr(sha256("${local.account}/${var.region}"), 0, 8)}"
  port              = "5432"
}
