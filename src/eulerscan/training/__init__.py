"""Training of classifiers: the loop, its settings, checkpoints and runs."""
