"""Results alone: they are right with and without the mistakes in `changes`."""

import pytest
import torch
from prefetch import Prefetcher, RunningMean


@pytest.fixture
def batches() -> list[torch.Tensor]:
    return [torch.full((4, 16), 51.0 * (1 + step)).pin_memory() for step in range(4)]


def test_all_batches_in_order(batches: list[torch.Tensor]) -> None:
    sums = [batch.sum() for batch in Prefetcher(batches)]
    assert [round(one.item()) for one in sums] == [13, 26, 38, 51]


def test_mean(batches: list[torch.Tensor]) -> None:
    mean = RunningMean()
    for batch in Prefetcher(batches):
        mean.add(batch)
    assert mean.value().item() == pytest.approx(0.5)


def test_nothing_to_load() -> None:
    assert list(Prefetcher([])) == []
