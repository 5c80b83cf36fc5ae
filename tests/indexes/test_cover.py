"""The cover of points by boxes: sound for any points, and good where a good one is known."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from es_skipping.indexes.toolkit.cover import compact, small_cover


def boxes_of(points: np.ndarray) -> np.ndarray:
    return np.repeat(points, 2, axis=1)


def area(boxes: np.ndarray) -> float:
    return float(((boxes[:, 1] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 2])).sum())


def covered(points: np.ndarray, boxes: np.ndarray) -> bool:
    inside = np.logical_and.reduce(
        [
            boxes[:, 0] <= points[:, :1],
            points[:, :1] <= boxes[:, 1],
            boxes[:, 2] <= points[:, 1:],
            points[:, 1:] <= boxes[:, 3],
        ]
    )
    return bool(inside.any(axis=1).all())


CENTERS = np.array([[0.0, 0.0], [50.0, 3.0], [52.0, 60.0], [-30.0, 20.0]])


def clusters(seed: int, each: int = 2000) -> tuple[np.ndarray, float]:
    """Points around `CENTERS`, and the area of the clusters' own boxes together."""
    random = np.random.default_rng(seed)
    groups = [center + random.uniform(-1, 1, (each, 2)) * random.uniform(0.2, 2, 2) for center in CENTERS]
    own = sum(area(np.array([[g[:, 0].min(), g[:, 0].max(), g[:, 1].min(), g[:, 1].max()]])) for g in groups)
    points = np.concatenate(groups)
    random.shuffle(points)
    return points, own


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("most", [64, 1024])
def test_clusters_are_found_exactly(seed: int, most: int) -> None:
    points, own = clusters(seed)
    cover = small_cover(compact(boxes_of(points), most), len(CENTERS))
    assert covered(points, cover)
    assert area(cover) == pytest.approx(own)


@pytest.mark.parametrize("outlier", [[1e9, -1e9], [np.inf, 0.0], [-np.inf, np.inf], [1.7e308, -1.7e308]])
def test_an_outlier_costs_one_box(outlier: list[float]) -> None:
    points, own = clusters(7)
    points = np.concatenate([points, [outlier]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cover = small_cover(compact(boxes_of(points), 1024), len(CENTERS) + 1)
    assert covered(points, cover)
    assert outlier in cover[:, ::2].tolist()
    finite = cover[np.isfinite(cover).all(axis=1)]
    assert area(finite) == pytest.approx(own)


def test_an_l_needs_two_boxes() -> None:
    along = np.linspace(0, 10, 500)
    points = np.concatenate([np.stack([along, 0 * along], axis=1), np.stack([0 * along, along], axis=1)])
    assert area(small_cover(compact(boxes_of(points), 1024), 2)) < 2, "one box has 100"


def test_a_diagonal_is_cut_evenly() -> None:
    along = np.linspace(0, 1, 1000)
    cover = small_cover(compact(boxes_of(np.stack([along, along], axis=1)), 512), 4)
    assert area(cover) < 0.27, "four equal squares have 0.25; the split of a split that is not looked at again has more"


@pytest.mark.parametrize("scale", [1e-300, 1e-9, 1e-3, 1e9, 1e300])
def test_the_unit_of_the_coordinates_does_not_matter(scale: float) -> None:
    points, _ = clusters(3, each=200)
    plain = small_cover(compact(boxes_of(points), 256), 4)
    scaled = small_cover(compact(boxes_of(points * [scale, 1.0]), 256), 4)
    np.testing.assert_allclose(scaled / [scale, scale, 1, 1], plain, rtol=1e-6)


def test_compacting_again_and_again_stays_bounded_and_covers() -> None:
    random = np.random.default_rng(11)
    points = random.normal(size=(60_000, 2)) ** 3
    cells = np.empty((0, 4))
    for batch in np.split(points, 30):
        cells = compact(np.concatenate([cells, boxes_of(batch)]), 512)
        assert len(cells) <= 512
    assert covered(points, cells)


def test_equal_points_are_one_box() -> None:
    assert compact(np.full((5000, 4), 7.0), 100).tolist() == [[7.0] * 4]
    assert small_cover(np.full((50, 4), 7.0), 4).tolist() == [[7.0] * 4]
