"""Evaluation metrics, one a file: fidelity of control, quality of generation, and their error bars."""
