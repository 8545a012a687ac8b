"""What scripts/check asks of the whole tree: its folders, targets, classes, tests and protocol."""
