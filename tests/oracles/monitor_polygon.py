"""The oracle of MONITOR with WITHIN(a, 'POLYGON(...)'): areas by Shapely, at every instant at which anything changes.

Interpretation of the definitions
---------------------------------
- The true location is uniform in the box of its errors around the prediction; a box without width or height is a
  segment or a point.
- EXPECTED: the predicted location is in the polygon or on its boundary. MAY: a part of the box is in the polygon that
  has a measure. MUST: the whole box is, up to sets without a measure. NOT WITHIN exchanges inside and outside; a
  location without error on the boundary is inside.
- The probability is the share of the box in the polygon. It is a polynomial of the second degree between two instants
  at which a corner of the box passes a line through an edge, or a corner of the polygon a line through a side of it.

An instant that matches although those around it do not, or the other way round, is a `Contact`.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import shapely

from tests.oracles.monitor_distance import NEAR, Contact
from tests.oracles.monitor_predictions import Line


@dataclass(frozen=True)
class Zone:
    """A polygon, the lines of x and y of a prediction, and whether it must be inside."""

    polygon: shapely.Geometry
    x: Line
    y: Line
    inside: bool
    semantics: str

    def place(self, at: float) -> tuple[float, float]:
        """The predicted location: the nearest doubles, so that one on an edge along an axis is on it."""
        return float(self.x.start + self.x.rate * Fraction(at)), float(self.y.start + self.y.rate * Fraction(at))

    def share(self, at: float) -> float:
        """The probability that the true location is in the polygon."""
        x, y = self.place(at)
        ex, ey = float(self.x.error), float(self.y.error)
        if ex > 0 and ey > 0:
            box = shapely.box(x - ex, y - ey, x + ex, y + ey)
            inside = box.intersection(self.polygon).area / box.area
        elif ex > 0 or ey > 0:
            segment = shapely.LineString([(x - ex, y - ey), (x + ex, y + ey)])
            inside = segment.intersection(self.polygon).length / segment.length
        else:
            inside = float(self.polygon.intersects(shapely.Point(x, y)))
        return inside if self.inside else 1.0 - inside

    def matches(self, at: float) -> bool:
        if self.semantics == "EXPECTED":
            return bool(self.polygon.intersects(shapely.Point(*self.place(at)))) == self.inside
        return self.share(at) > 1e-12 if self.semantics == "MAY" else self.share(at) > 1 - 1e-12

    def changes(self, low: float, high: float) -> list[float]:
        """The instants between two others at which anything may change, and these two."""
        rings = [ring.coords for part in shapely.get_parts(self.polygon) for ring in (part.exterior, *part.interiors)]
        edges = [edge for ring in rings for edge in itertools.pairwise(ring)]
        instants = []
        for (x0, y0), (x1, y1) in edges:
            normals = [(1.0, 0.0), (0.0, 1.0), (y1 - y0, x0 - x1)]
            for (nx, ny), sx, sy in itertools.product(normals, (-1, 0, 1), (-1, 0, 1)):
                start = nx * (float(self.x.start) + sx * float(self.x.error) - x0)
                start += ny * (float(self.y.start) + sy * float(self.y.error) - y0)
                rate = nx * float(self.x.rate) + ny * float(self.y.rate)
                if rate:
                    instants.append(-start / rate)
        inner = sorted(at for at in instants if low < at < high)
        apart = [at for before, at in itertools.pairwise([low, *inner]) if at - before > NEAR]
        return [low, *(at for at in apart if high - at > NEAR), high]

    def pieces(self, low: float, high: float) -> list[tuple[float, float, float]]:
        """The connected sets of matching instants: from, to, and the highest probability."""
        cuts = self.changes(low, high)
        found: list[list[float]] = []
        was_matching = False
        for before, after in itertools.pairwise(cuts):
            matches = self.matches((before + after) / 2)
            at_cut = self.matches(before)
            is_contact = at_cut and not matches if before == low else was_matching == matches != at_cut
            if is_contact:
                raise Contact
            if matches:
                best = self.highest(before, after)
                if was_matching:
                    found[-1] = [found[-1][0], after, max(found[-1][2], best)]
                else:
                    found.append([before, after, best])
            was_matching = matches
        return [(begin, end, best) for begin, end, best in found]

    def highest(self, low: float, high: float) -> float:
        """The largest value of the polynomial through three instants in between; at the ends it may jump."""
        if float(self.x.error) == float(self.y.error) == 0:
            return 1.0
        shares = np.array([0.25, 0.5, 0.75])
        polynomial = np.polynomial.Polynomial.fit(shares, [self.share(low + at * (high - low)) for at in shares], 2)
        tops = [float(top.real) for top in polynomial.deriv().roots() if 0 < top.real < 1]
        return min(1.0, max(float(polynomial(at)) for at in (0.0, 1.0, *tops)))
