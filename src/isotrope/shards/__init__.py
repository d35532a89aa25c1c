"""Vectors of texts that do not fit into memory: streamed block by block, or as shards that many processes share."""
