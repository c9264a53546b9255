"""DELETE, UPDATE and MERGE: each is a frame of rows that change, one job, and one commit."""
