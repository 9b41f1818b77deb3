# What Costguard remembers (docs/ledger.md): PostgreSQL in a network of its own, which nothing outside it reaches.
# Policies are published into it from a desk: `desk_networks` lets that in for a while.
# Its account, with a password that no state ever holds, is made by hand once: docs/deploy-tencent.md.

locals {
  network = "10.213.0.0/24" # peered with nothing

  zone = [for one in data.tencentcloud_postgresql_zones.here.zone_set : one.zone if one.zone_state == "AVAILABLE"][0]

  # The smallest class of that zone: memory in MiB, then cores, as text that sorts.
  sizes = { for class in data.tencentcloud_postgresql_db_instance_classes.here.class_info_set : format("%08d-%03d", class.memory, class.cpu) => class... }
  class = local.sizes[sort(keys(local.sizes))[0]][0]

  # The address without its password.
  ledger = "postgresql://costguard@${tencentcloud_postgresql_instance.ledger.private_access_ip}:${tencentcloud_postgresql_instance.ledger.private_access_port}/costguard?sslmode=require"
}

data "tencentcloud_postgresql_zones" "here" {}

data "tencentcloud_postgresql_db_instance_classes" "here" {
  zone             = local.zone
  db_engine        = "postgresql"
  db_major_version = "15"
}

resource "tencentcloud_vpc" "here" {
  name       = var.name
  cidr_block = local.network
  tags       = local.tags
}

resource "tencentcloud_subnet" "here" {
  vpc_id            = tencentcloud_vpc.here.id
  name              = var.name
  cidr_block        = local.network
  availability_zone = local.zone
  tags              = local.tags

  lifecycle {
    ignore_changes = [availability_zone] # where it was made: a zone that opens or closes moves no ledger
  }
}

resource "tencentcloud_security_group" "ledger" {
  name        = "${var.name}-ledger"
  description = "Costguard's ledger: its own network, and nothing goes out"
  tags        = local.tags
}

resource "tencentcloud_security_group_rule_set" "ledger" {
  security_group_id = tencentcloud_security_group.ledger.id

  ingress {
    action      = "ACCEPT"
    cidr_block  = local.network
    protocol    = "TCP"
    port        = "5432"
    description = "Costguard's functions"
  }

  dynamic "ingress" {
    for_each = var.desk_networks

    content {
      action      = "ACCEPT"
      cidr_block  = ingress.value
      protocol    = "TCP"
      port        = "ALL" # the public address has a port of its own, known once it is there
      description = "a desk, for a while"
    }
  }

  ingress {
    action      = "DROP"
    cidr_block  = "0.0.0.0/0"
    protocol    = "ALL"
    port        = "ALL"
    description = "everything else"
  }

  egress {
    action      = "DROP"
    cidr_block  = "0.0.0.0/0"
    protocol    = "ALL"
    port        = "ALL"
    description = "a database asks nobody"
  }
}

# The provider wants a password of root. The one made here is thrown away: the page of the deployment resets it before
# anything is stored, so that what the state remembers opens nothing.
resource "tencentcloud_postgresql_instance" "ledger" {
  name                 = "${var.name}-ledger"
  availability_zone    = tencentcloud_subnet.here.availability_zone
  charge_type          = "POSTPAID_BY_HOUR"
  db_major_version     = "15"
  charset              = "UTF8"
  cpu                  = local.class.cpu
  memory               = max(1, floor(local.class.memory / 1024))
  storage              = max(10, ceil(local.class.min_storage / 10) * 10)
  vpc_id               = tencentcloud_vpc.here.id
  subnet_id            = tencentcloud_subnet.here.id
  security_groups      = [tencentcloud_security_group.ledger.id]
  root_password        = "Cg1-${substr(replace(uuid(), "-", ""), 0, 26)}"
  delete_protection    = var.deletion_protection
  public_access_switch = length(var.desk_networks) > 0
  tags                 = local.tags

  lifecycle {
    ignore_changes = [root_password, cpu, memory, storage, availability_zone] # a new class on offer resizes no ledger
  }
}

resource "tencentcloud_postgresql_instance_ssl_config" "ledger" {
  db_instance_id  = tencentcloud_postgresql_instance.ledger.id
  ssl_enabled     = true
  connect_address = tencentcloud_postgresql_instance.ledger.private_access_ip
}

resource "tencentcloud_postgresql_backup_plan_config" "ledger" {
  db_instance_id               = tencentcloud_postgresql_instance.ledger.id
  backup_period                = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
  min_backup_start_time        = "02:00:00"
  max_backup_start_time        = "03:00:00"
  base_backup_retention_period = 30
  log_backup_retention_period  = 30
}
