"""What changes an update for any method: Child-Tuning, chain-thaw."""
