"""The transform as a layer, as a loss, and as the first layer of classifiers."""
