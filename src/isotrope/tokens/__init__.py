"""The tokenizer as we use it, the padded batch, words inside tokens."""
