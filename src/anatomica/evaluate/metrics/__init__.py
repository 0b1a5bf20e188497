"""Evaluation metrics, one per file: fidelity of control, quality of generation, and their error bars."""
