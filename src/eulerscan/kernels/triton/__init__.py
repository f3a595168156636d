"""The fast algorithm on GPUs (CUDA and ROCm) in Triton. :mod:`.problem` launches the kernels. Import this on use: it loads triton."""
