"""How sampling is led to a target: the paper's gradient and the Gauss-Newton solver."""
