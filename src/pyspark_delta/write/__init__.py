"""The write pipeline: from the rows of a request to the draft of one commit, for every engine that writes rows."""
