"""The functions of Kubernetes' CEL environment, a file per library, and which Kubernetes version has which."""
