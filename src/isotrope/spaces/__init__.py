"""Maps fitted to an encoder after training.

A file dropped into this folder is found by the command line and by ``isotrope.methods()``.
"""
