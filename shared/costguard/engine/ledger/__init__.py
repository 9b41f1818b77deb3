"""What Costguard remembers, written once above `RecordStore`: one module for each kind of memory."""
