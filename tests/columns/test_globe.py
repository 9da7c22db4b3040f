"""The stereographic projection, against the geometry of a sphere and a plane."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from anabranch.columns.globe import RADIUS, Projection, beyond

longitudes, latitudes = st.floats(-180, 180), st.floats(-90, 90)


def vector(longitude: float, latitude: float) -> np.ndarray:
    """The point of the unit sphere."""
    x, y = math.radians(longitude), math.radians(latitude)
    return np.array([math.cos(y) * math.cos(x), math.cos(y) * math.sin(x), math.sin(y)])


def projected(point: tuple[float, float], origin: tuple[float, float]) -> tuple[float, float]:
    """Where the line from the point opposite the origin through a point meets the plane that touches the origin."""
    centre, target = vector(*origin), vector(*point)
    x = math.radians(origin[0])
    east = np.array([-math.sin(x), math.cos(x), 0.0])
    north = np.cross(centre, east)
    # -centre + s (target + centre) has the height 1 over the plane through the middle of the sphere.
    s = 2 / (1 + centre @ target)
    met = -centre + s * (target + centre)
    return float(RADIUS * (met @ east)), float(RADIUS * (met @ north))


@given(longitudes, latitudes, longitudes, latitudes)
def test_a_point_is_projected_from_the_opposite_point(x: float, y: float, x0: float, y0: float) -> None:
    assume(vector(x, y) @ vector(x0, y0) > 0.01)
    ((east, north),) = Projection((0, 1), x0, y0).project(np.array([[x, y]])).tolist()
    assert (east, north) == pytest.approx(projected((x, y), (x0, y0)), rel=1e-9, abs=1e-6)
    assert not beyond(np.array([x]), np.array([y]), (x0, y0))[0]


@given(longitudes, st.floats(-80, 80), st.floats(0.001, 0.2), st.floats(0, 360), st.floats(0, 360))
def test_distances_near_the_origin_are_those_on_the_globe(
    x0: float, y0: float, degrees: float, bearing: float, other: float
) -> None:
    """Two points within 22 km of the origin, also across the date line: lengths are right to 1 in 300,000."""
    points = []
    for angle in (bearing, other):
        turn = math.radians(angle)
        y = y0 + degrees * math.cos(turn)
        x = x0 + degrees * math.sin(turn) / math.cos(math.radians(y0))
        points.append(((x + 180) % 360 - 180, y))
    a, b = (vector(*point) for point in points)
    globe = 2 * RADIUS * math.asin(min(1.0, float(np.linalg.norm(a - b)) / 2))
    plane = Projection((0, 1), x0, y0).project(np.array(points))
    assert float(np.hypot(*(plane[0] - plane[1]))) == pytest.approx(globe, rel=1e-5, abs=1e-3)


def test_other_columns_stay_and_far_points_are_found() -> None:
    values = np.array([[7.0, 47.0, 8.0], [7.0, 47.5, 8.5]])
    metres = Projection((2, 1), 8.0, 47.0).project(values)
    assert metres[:, 0].tolist() == [7.0, 7.0]
    assert metres[0, 1:].tolist() == [0.0, 0.0]
    assert values[1].tolist() == [7.0, 47.5, 8.5], "the input is not changed"
    assert beyond(np.array([97.0, 99.0]), np.array([0.0, 0.0]), (8.0, 0.0)).tolist() == [False, True]
