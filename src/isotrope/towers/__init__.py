"""Modules that exist only while training: copies of the encoder, generator, decoder, heads."""
