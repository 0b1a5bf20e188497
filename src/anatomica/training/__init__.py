"""What the two training loops of `anatomica.train` stand on, one idea a file."""
