"""Questions about shapes: how far apart they are, how they align, and which settings suit them."""
