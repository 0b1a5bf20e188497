"""What is true: metrics, baselines, the paper's experiments, benchmarks."""
