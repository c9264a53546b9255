"""Where rows go when files are rewritten: order of values, trees of splits, curves, cubes, and how good a layout is."""
