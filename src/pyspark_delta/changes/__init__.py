"""The change data feed: which rows changed between two versions, planned from the commits alone (C162-C176)."""
