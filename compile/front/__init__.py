"""From a program to a plan: trace, rewrite, infer finite domains, factor packed keys, schedule into layers."""
