"""Memory that batches of many shapes leave in pieces goes back to the system now and then.

glibc keeps freed memory of a thread in that thread's arena; batches of other shapes do not fit into the holes, and the
process grows by some megabytes every thousand requests.
"""

from __future__ import annotations

from isotrope.allocator import return_free_memory

EVERY = 64  # batches


def return_memory(batches: int) -> None:
    """After each ``EVERY`` batches; a few milliseconds."""
    if batches % EVERY == 0:
        return_free_memory()
