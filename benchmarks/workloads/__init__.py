"""One module for each workload: `workload(scale)`, and the functions that its peers run."""
