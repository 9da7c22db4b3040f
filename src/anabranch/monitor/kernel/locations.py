"""What the areas of a query are: whether they have a probability, are convex, and are certain at some instants."""

from __future__ import annotations

from anabranch.compiled import compiled_inline, compiled_uncounted
from anabranch.monitor.kernel.lines import Lines
from anabranch.monitor.kernel.probabilities import Constraints, error_of, predicted_form
from anabranch.monitor.kernel.shapes import FARTHEST, NEAREST, distance_from, which_point
from anabranch.monitor.kernel.zones import is_match


@compiled_inline
def has_weighed_shape(constraints: Constraints) -> bool:
    """Whether the probability depends on an area."""
    for is_weighed in constraints.shapes.is_weighed:
        if is_weighed:
            return True
    return False


@compiled_inline
def are_convex(constraints: Constraints) -> bool:
    """Whether the areas on which the probability depends are convex; then its logarithm is concave."""
    for s in range(len(constraints.shapes.is_convex)):
        if constraints.shapes.is_weighed[s] and not constraints.shapes.is_convex[s]:
            return False
    return True


@compiled_uncounted
def are_certain(lines: Lines, constraints: Constraints) -> bool:
    """Whether locations are in their areas for all possible errors, at the instants of `lines.center`."""
    shapes = constraints.shapes
    for s in range(len(shapes.is_weighed)):
        if not shapes.is_weighed[s]:
            continue
        fx, fy = shapes.forms[s, 0], shapes.forms[s, 1]
        x = predicted_form(fx, constraints, lines.center) - shapes.centers[s, 0]
        y = predicted_form(fy, constraints, lines.center) - shapes.centers[s, 1]
        ex, ey = error_of(fx, constraints, lines.error), error_of(fy, constraints, lines.error)
        if shapes.first[s] < shapes.first[s + 1]:
            if not is_match(s, x, y, ex, ey, which_point(ex, ey, FARTHEST), 0.0, shapes):
                return False
            continue
        farthest, nearest = distance_from(x, y, ex, ey, FARTHEST), distance_from(x, y, ex, ey, NEAREST)
        if not (nearest >= shapes.distances[s, 0] and farthest <= shapes.distances[s, 1]):
            return False
    return True
