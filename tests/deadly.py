"""Work that ends badly. A module of its own, and a light one: the processes that die of it are started again and again."""

import os


def die_at_two(job: int) -> None:
    if job == 2:
        os._exit(1)
    if job == 3:
        raise ValueError("three is odd")
