"""What is particular to each kind: strategies (create, update, validate, warn) behind the generic verbs."""
