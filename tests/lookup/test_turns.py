"""Sessions that share a process: limits, order and fairness of their turns."""

from __future__ import annotations

import threading
import time

import pytest

from es_skipping.lookup.turns import Turns


def queue(turns: Turns, owner: str, served: list[str]) -> threading.Thread:
    def wait() -> None:
        with turns.turn(owner, 30):
            served.append(owner)

    before = sum(map(len, turns._waiting.values()))
    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    while sum(map(len, turns._waiting.values())) == before:
        time.sleep(0.001)
    return thread


def test_free_slots_go_round_the_waiting_owners() -> None:
    turns = Turns(1)
    served: list[str] = []
    with turns.turn("first", 1):
        threads = [queue(turns, owner, served) for owner in ["loud"] * 5 + ["quiet"] + ["other"] * 2]
    for thread in threads:
        thread.join(10)
    assert served == ["loud", "quiet", "other", "loud", "other", "loud", "loud", "loud"]


def test_at_most_the_limit_runs_at_once() -> None:
    turns, lock = Turns(3), threading.Lock()
    running = most = 0

    def work(owner: int) -> None:
        nonlocal running, most
        for _ in range(50):
            with turns.turn(str(owner), 30):
                with lock:
                    running += 1
                    most = max(most, running)
                time.sleep(0.0005)
                with lock:
                    running -= 1

    threads = [threading.Thread(target=work, args=(i % 4,)) for i in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 3
    assert turns._free == 3
    assert not turns._waiting


def test_a_turn_that_comes_too_late_fails_and_gives_its_place_away() -> None:
    turns = Turns(1)
    with turns.turn("first", 1):
        with pytest.raises(TimeoutError, match="wait for their turn"):
            with turns.turn("second", 0.01):
                pass
    with turns.turn("third", 0.01):
        pass


def test_an_error_gives_the_slot_back() -> None:
    turns = Turns(1)
    for _ in range(3):
        with pytest.raises(ValueError):
            with turns.turn("one", 0.01):
                raise ValueError
