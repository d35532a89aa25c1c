"""View → vectors: backbone, pooling, heads, roles, and the folders they are kept in."""
