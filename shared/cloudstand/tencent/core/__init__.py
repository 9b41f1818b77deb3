"""What every call passes: signature, parameters, permission, paging, errors; and the table of actions."""
