"""A server that serves a catalog in a database through Unity Catalog's API.

`application` is the ASGI application, `run` starts it. Every operation is described once, as an `Operation`: its
requirements, its parameters and its response. Routes, checks and the OpenAPI description are derived from it.
"""
