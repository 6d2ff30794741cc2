"""The paper's arithmetic, and a person's own tasks: program, compiled and learned models on the same problems."""
