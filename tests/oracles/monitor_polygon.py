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

An instant that matches although those around it do not, or the other way round, is a `Contact`. So is one around which
the probability barely exceeds the level of a certain range.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import shapely

from tests.oracles.monitor_distance import NEAR, Contact
from tests.oracles.monitor_predictions import Line

#: The error of a share, and by how much a probability must exceed a level: a search could miss it otherwise.
_ROUNDING, _BARELY = 1e-9, 1e-3


@dataclass(frozen=True)
class Zone:
    """A polygon, the lines of x and y of a prediction, and whether it must be inside."""

    polygon: shapely.Geometry
    x: Line
    y: Line
    inside: bool
    semantics: str

    def place(self, at: Fraction) -> tuple[float, float]:
        """The predicted location: the nearest doubles, so that one on an edge along an axis is on it."""
        return float(self.x.start + self.x.rate * at), float(self.y.start + self.y.rate * at)

    def share(self, at: Fraction) -> float:
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

    def matches(self, at: Fraction) -> bool:
        if self.semantics == "EXPECTED":
            return bool(self.polygon.intersects(shapely.Point(*self.place(at)))) == self.inside
        return self.share(at) > 1e-12 if self.semantics == "MAY" else self.share(at) > 1 - 1e-12

    def changes(self, low: Fraction, high: Fraction) -> list[Fraction]:
        """The instants between two others at which anything may change, and these two."""
        rings = [ring.coords for part in shapely.get_parts(self.polygon) for ring in (part.exterior, *part.interiors)]
        edges = [edge for ring in rings for edge in itertools.pairwise(ring)]
        instants = []
        for edge in edges:
            (x0, y0), (x1, y1) = ([Fraction(number) for number in point] for point in edge)
            normals = [(1, 0), (0, 1), (y1 - y0, x0 - x1)]
            for (nx, ny), sx, sy in itertools.product(normals, (-1, 0, 1), (-1, 0, 1)):
                start = nx * (self.x.start + sx * self.x.error - x0) + ny * (self.y.start + sy * self.y.error - y0)
                rate = nx * self.x.rate + ny * self.y.rate
                if rate:
                    instants.append(-start / rate)
        inner = sorted(at for at in instants if low < at < high)
        apart = [at for before, at in itertools.pairwise([low, *inner]) if at - before > NEAR]
        return [low, *(at for at in apart if high - at > NEAR), high]

    def pieces(self, low: Fraction, high: Fraction) -> list[tuple[Fraction, Fraction, float]]:
        """The connected sets of matching instants: from, to, and the highest probability."""
        cuts = self.changes(low, high)
        found: list[tuple[Fraction, Fraction, float]] = []
        was_matching = False
        for before, after in itertools.pairwise(cuts):
            matches = self.matches((before + after) / 2)
            at_cut = self.matches(before)
            is_contact = at_cut and not matches if before == low else was_matching == matches != at_cut
            if is_contact:
                raise Contact
            if matches:
                best = max(self.highest(before, after), self.share(before))
                begin, _, best_before = found.pop() if was_matching else (before, before, 0.0)
                found.append((begin, after, max(best, best_before)))
            elif was_matching and at_cut:
                found[-1] = (*found[-1][:2], max(found[-1][2], self.share(before)))
            was_matching = matches
        return found

    def highest(self, low: Fraction, high: Fraction) -> float:
        """The largest value of the polynomial through three instants in between; at the ends the share may jump."""
        if float(self.x.error) == float(self.y.error) == 0:
            return 1.0
        polynomial = self.polynomial(low, high)
        return min(1.0, max(float(polynomial(at)) for at in (0.0, 1.0, *tops(polynomial))))

    def polynomial(self, low: Fraction, high: Fraction) -> np.polynomial.Polynomial:
        """The probability between two instants at which anything changes, which are 0 and 1."""
        instants = [Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)]
        shares = [self.share(low + at * (high - low)) for at in instants]
        return np.polynomial.Polynomial.fit(np.array(instants, float), shares, 2)

    def certain(self, begin: Fraction, end: Fraction, level: float) -> tuple[float, float]:
        """The first and the last instant of a piece at which the probability is, or approaches, at least a level."""
        cuts = self.changes(begin, end)
        reached = [float(cut) for cut in cuts if self.share(cut) >= level - _ROUNDING]
        for low, high in itertools.pairwise(cuts):
            polynomial = self.polynomial(low, high)
            if any(abs(float(polynomial(at)) - level) < _BARELY for at in tops(polynomial)):
                raise Contact
            # Rounding errors of a coefficient that is 0 would move the roots.
            roots = (polynomial - level).trim(_ROUNDING).roots()
            crossings = [float(root.real) for root in roots if 0 < root.real < 1]
            inside = [at for at in (0.0, 1.0, *crossings) if float(polynomial(at)) >= level - _ROUNDING]
            reached += [float(low) + at * float(high - low) for at in inside]
        return min(reached), max(reached)


def tops(polynomial: np.polynomial.Polynomial) -> list[float]:
    """Where a polynomial has its maximum or minimum between 0 and 1, if it bends."""
    bend = abs(float(polynomial.convert().coef[-1])) if polynomial.convert().degree() == 2 else 0.0
    return [float(top.real) for top in polynomial.deriv().roots() if bend > _ROUNDING and 0 < top.real < 1]
