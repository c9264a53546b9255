"""A server that offers a catalog in a database through Unity Catalog's API.

`application` is the ASGI application, `run` starts it. Every operation is described once, as an `Operation`: what it
needs, what it takes and what it answers; routes, checks and the OpenAPI description all come from that.
"""
