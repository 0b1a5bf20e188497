"""What the two training loops of `anatomica.prior.training.train` use, one idea per file."""
