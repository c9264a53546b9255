"""Helpers for tests of users: contracts of stores, catalogs and committers, fault injection, table builders."""
