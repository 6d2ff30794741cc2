"""Everything that puts the other three packages to work: the command line, training, evaluation and comparison."""
