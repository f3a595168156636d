"""The experiments of the paper: plans of runs, running them, and rendering tables and figures."""
