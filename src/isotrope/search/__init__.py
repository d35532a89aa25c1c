"""Index and query."""
