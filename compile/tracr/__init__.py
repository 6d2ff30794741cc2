"""From a plan to weights through tracr's `craft` and `assemble` (JAX), with absolute positions."""
