"""What can be asked: constraints, YAML, the paper's tasks, the table of quantities."""
