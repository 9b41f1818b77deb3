"""CVM machines, disks, snapshots, tags and types, Cloud Monitor and CloudAudit."""
