"""For driver authors: a DRA driver in Python."""
