"""Functions run at the same moment, each in a process of its own, as web processes and workers do."""

import multiprocessing
import traceback
from collections.abc import Callable, Sequence
from typing import Any

_fork = multiprocessing.get_context("fork")


def at_once(*functions: Callable[[], Any], seconds: float = 60) -> list[Any]:
    """What the functions return, in their order; raises AssertionError with the trace of the first that raises.

    What they return has to be picklable; what they change in memory is lost with their process.
    """
    ready = _fork.Barrier(len(functions))
    pipes = [_fork.Pipe(duplex=False) for _ in functions]
    processes = [
        _fork.Process(target=_run, args=(function, ready, sending), daemon=True)
        for function, (_, sending) in zip(functions, pipes, strict=True)
    ]
    for process in processes:
        process.start()
    results: Sequence[tuple[bool, Any]] = []
    try:
        results = [_result(receiving, seconds) for receiving, _ in pipes]
    finally:
        for process in processes:
            process.join(1 if len(results) == len(functions) else 0)
            process.kill()
            process.join()
    for worked, value in results:
        assert worked, value
    return [value for _, value in results]


def _run(function: Callable[[], Any], ready: Any, sending: Any) -> None:
    try:
        ready.wait(30)
        sending.send((True, function()))
    except BaseException:
        sending.send((False, traceback.format_exc()))


def _result(receiving: Any, seconds: float) -> tuple[bool, Any]:
    assert receiving.poll(seconds), "it did not end"
    worked, value = receiving.recv()
    return worked, value
