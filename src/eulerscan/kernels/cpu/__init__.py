"""The fast algorithm on the CPU, compiled by numba: :mod:`.problem` calls :mod:`.forward` and :mod:`.backward`."""
