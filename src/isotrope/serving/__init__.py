"""The HTTP service and its page: embeddings, similarity, search and predictions for programs that speak HTTP.

A request becomes texts (request_fields.py), waits in one bounded queue (batch_queue.py) and leaves as JSON in the
shape that its client knows (openai_routes.py, tei_routes.py). Needs the extra ``serve``.
"""
