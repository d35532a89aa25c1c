"""View → vectors: the encoder, its pooling and parts, and the folder on disk."""
