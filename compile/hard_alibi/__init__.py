"""From a plan to weights of the paper's own architecture: window and NoPE heads, ReLU, no positions."""
