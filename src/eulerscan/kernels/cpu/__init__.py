"""The fast algorithm on the CPU, compiled by numba."""
