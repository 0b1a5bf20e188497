"""The paper's conditional baselines: denoisers that are trained to read a task's moments."""
