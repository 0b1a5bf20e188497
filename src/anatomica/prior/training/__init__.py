"""What the two training loops of `anatomica.prior.training.train` stand on, one idea per file."""
