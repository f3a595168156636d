"""The fast algorithm in Triton, for GPUs (CUDA and ROCm). :mod:`.problem` launches the kernels."""
