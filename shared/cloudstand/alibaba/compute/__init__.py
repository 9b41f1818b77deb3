"""ECS machines, disks, snapshots, tags and types, CloudMonitor and ActionTrail."""
