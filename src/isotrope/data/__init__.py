"""Files → records → token arrays: readers, checks, sentence splitting, the token cache, orders of batches, leaks."""
