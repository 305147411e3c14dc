"""Who asks, and what they may do: certificates, tokens, impersonation, RBAC."""
