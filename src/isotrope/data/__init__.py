"""Files → records: readers, checks, sentence splitting, the token cache, batches without duplicates."""
