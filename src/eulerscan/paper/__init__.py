"""The experiments of the paper: plans (what to run), running, and rendering (tables and figures)."""
