"""Jobs that end badly. A light module, since the processes that they kill are started again and again."""

import os
import time


def die_at_two(job: int) -> None:
    if job == 2:
        os._exit(1)
    if job == 3:
        raise ValueError("three is odd")


def wait_for_all(job) -> None:
    """Succeed if so many jobs are running at the same time."""
    folder, number, count = job
    (folder / str(number)).touch()
    end = time.monotonic() + 60
    while len(list(folder.iterdir())) < count:
        if time.monotonic() > end:
            raise TimeoutError("alone")
        time.sleep(0.01)


def sleep_as_long_as_the_parent(path) -> None:
    path.write_text(str(os.getpid()))
    time.sleep(600)
