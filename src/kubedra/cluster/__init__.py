"""Puts an embedded cluster together and takes it apart."""
