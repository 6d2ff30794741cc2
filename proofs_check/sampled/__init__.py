"""The sharp theorem on millions of random machines."""
