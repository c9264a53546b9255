"""Settings and state of a session: primitives that import nothing else of this package."""
