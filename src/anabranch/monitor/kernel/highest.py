"""The highest probability over a convex set of instants, and where it is.

The probability of one form depends on what it is predicted to be alone, and is highest nearest to the middle of its
interval. Of several, the product is log-concave where each has one interval (`<=`, `<`): it is cut down to the highest
by the ellipsoid method, which does not mind kinks. Where a form has several intervals there may be several hills: a
lattice finds the best two, and each is climbed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anabranch.arrays import F64
from anabranch.compiled import assign, compiled, compiled_inline
from anabranch.monitor.kernel.chances import Asked, error_of, form_chance, forms_of, joint_chance, middle_of
from anabranch.monitor.kernel.laws import NONE, ZERO
from anabranch.monitor.kernel.polygons import Body, clip, excess, vertices

#: Probabilities are found to about this, where they are searched for.
PRECISION = 1e-8
_GOLDEN = 0.6180339887498949


class Lines(NamedTuple):
    """What is predicted: value v at instant x is base[v] + rate[v] * x, give or take error[v].

    `center` and `plane` are room to work in, for values at some instants, and for a form as a function of them.
    """

    base: F64
    rate: F64
    error: F64
    center: F64
    plane: F64


@compiled_inline
def _predict(point: F64, lines: Lines, asked: Asked) -> None:
    """Work out the predictions of all values at some instants, as `lines.center`."""
    for v in range(len(lines.center)):
        lines.center[v] = lines.base[v] + lines.rate[v] * point[asked.axis[v]]


@compiled_inline
def plane_of(f: int, asked: Asked, lines: Lines, plane: F64) -> None:
    """The prediction of a form as a linear function of the instants: coefficients, then constant."""
    for j in range(len(plane)):
        plane[j] = 0.0
    u, v = asked.forms[f, 0], asked.forms[f, 1]
    plane[asked.axis[u]] += lines.rate[u]
    plane[-1] += lines.base[u]
    if v >= 0:
        plane[asked.axis[v]] -= lines.rate[v]
        plane[-1] -= lines.base[v]


@compiled
def highest(body: Body, lines: Lines, asked: Asked, enough: float, point: F64) -> float:
    """The highest probability over a set of instants; where, is written to `point`.

    Below `enough` it is an upper bound: nobody asks for such answers.
    """
    _mean(body.corners, body.n, point)
    if _is_certain(point, lines, asked):  # as it is in the middle of most regions
        return 1.0
    bound, groups, is_alone, is_convex = _bound(body, lines, asked, point)
    if groups == 0 or (groups == 1 and is_alone) or bound < enough or bound == 0.0:
        return bound
    if _in_bands(body, lines, asked, bound, point):
        return bound
    if len(point) == 1:
        return _on_line(body, lines, asked, is_convex, point)
    if is_convex and groups == 2 and is_alone and len(point) == 2:
        return _on_edges(body, lines, asked, point)
    if is_convex:
        low, high = _box(body, len(point))
        return _climb(low, high, body, lines, asked, bound, point)
    return _several_hills(body, lines, asked, bound, point)


@compiled_inline
def _is_certain(point: F64, lines: Lines, asked: Asked) -> bool:
    """Whether all constraints hold at some instants, whatever the errors are."""
    _predict(point, lines, asked)
    for f in range(asked.groups.shape[1]):
        if not _is_uncertain(f, asked):
            continue
        middle = middle_of(f, asked, lines.center)
        error, held = error_of(f, asked, lines.error), False
        for k in range(asked.first[f], asked.first[f + 1]):
            held |= asked.sets[k, 0] + error <= middle <= asked.sets[k, 1] - error
        if not held:
            return False
    return True


@compiled_inline
def _mean(corners: F64, n: int, point: F64) -> None:
    for j in range(len(point)):
        point[j] = 0.0
        for k in range(n):
            point[j] += corners[k, j] / n


# ---------------------------------------------------------------- one form


@compiled
def _bound(body: Body, lines: Lines, asked: Asked, point: F64) -> tuple[float, int, bool, bool]:
    """(the product of what each group can reach by itself, how many groups, whether each has one form, convexity).

    Where there is one form alone, the point at which it is reached is written to `point`.
    """
    bound, groups, is_alone, is_convex = 1.0, 0, True, True
    plane = lines.plane
    for g in range(len(asked.groups)):
        count, _ = forms_of(g, asked)
        if count == 0:
            continue
        own = 1.0
        for f in range(asked.groups.shape[1]):
            if asked.groups[g, f]:
                is_convex &= asked.first[f + 1] - asked.first[f] <= 1
                plane_of(f, asked, lines, plane)
                low, high, least, most = _range(plane, body.corners, body.n)
                best = _best_middle(f, low, high, asked, lines.error)
                own = min(own, form_chance(f, best, asked, lines.error)[0])
                if groups == 0:
                    _between(body.corners, least, most, (best - low) / (high - low) if high > low else 0.5, point)
        groups, is_alone = groups + 1, is_alone and count == 1
        bound *= own
    return bound, groups, is_alone, is_convex


@compiled_inline
def _between(corners: F64, one: int, other: int, share: float, point: F64) -> None:
    for j in range(len(point)):
        point[j] = corners[one, j] + share * (corners[other, j] - corners[one, j])


@compiled_inline
def _range(plane: F64, corners: F64, n: int) -> tuple[float, float, int, int]:
    """The least and the highest value of a linear function over the corners, and at which of them."""
    dims = len(plane) - 1
    low, high, least, most = np.inf, -np.inf, ZERO, ZERO
    for k in range(n):
        value = plane[dims]
        for j in range(dims):
            value += plane[j] * corners[k, j]
        if value < low:
            low, least = value, k
        if value > high:
            high, most = value, k
    return low, high, least, most


@compiled
def _best_middle(f: int, low: float, high: float, asked: Asked, e: F64) -> float:
    """The prediction between `low` and `high` at which the form is most probably in its set."""
    if asked.first[f + 1] - asked.first[f] != 1:
        return _sampled_middle(f, low, high, asked, e)
    lower, upper = asked.sets[asked.first[f], 0], asked.sets[asked.first[f], 1]
    if lower == -np.inf:
        return low
    if upper == np.inf:
        return high
    return min(max(0.5 * (lower + upper), low), high)


@compiled
def _sampled_middle(f: int, low: float, high: float, asked: Asked, e: F64) -> float:
    """The same where there are several intervals: even steps and the ends of what is certain, then by halves."""
    steps = 64
    n = asked.first[f + 1] - asked.first[f]
    tried = np.empty(steps + 1 + 2 * n)
    for k in range(steps + 1):
        tried[k] = low + (high - low) * k / steps
    for k in range(n):
        tried[steps + 1 + 2 * k] = asked.sets[asked.first[f] + k, 0] + error_of(f, asked, e)
        tried[steps + 2 + 2 * k] = asked.sets[asked.first[f] + k, 1] - error_of(f, asked, e)
    best, top = low, -1.0
    for middle in tried:
        if low <= middle <= high:
            value, _ = form_chance(f, middle, asked, e)
            if value > top:
                best, top = middle, value
    reach = (high - low) / steps
    while reach > PRECISION * max(1.0, abs(best)) and top < 1.0:
        for middle in (best - reach, best + reach):
            if low <= middle <= high:
                value, _ = form_chance(f, middle, asked, e)
                if value > top:
                    best, top = middle, value
        reach *= 0.5
    return best


# ---------------------------------------------------------------- several forms


@compiled_inline
def _is_uncertain(f: int, asked: Asked) -> bool:
    for g in range(len(asked.groups)):
        if asked.groups[g, f]:
            return True
    return False


@compiled
def _in_bands(body: Body, lines: Lines, asked: Asked, bound: float, point: F64) -> bool:
    """Whether the bound is reached: where all forms but one are certain, and the last is at its best.

    The instants at which a form is certain are a band. The point is written to `point`.
    """
    dims = len(point)
    extra, plane = np.empty((2 * asked.groups.shape[1], dims + 1)), lines.plane
    count, last = ZERO, NONE
    for f in range(asked.groups.shape[1]):
        if not _is_uncertain(f, asked):
            continue
        if asked.first[f + 1] - asked.first[f] != 1:
            return False
        plane_of(f, asked, lines, plane)
        low, high, _, _ = _range(plane, body.corners, body.n)
        error = error_of(f, asked, lines.error)
        lower, upper = asked.sets[asked.first[f], 0] + error, asked.sets[asked.first[f], 1] - error
        if lower > upper or low > upper or high < lower:
            if last >= 0:
                return False
            last = f
            continue
        if high > upper:
            extra[count, :dims], extra[count, dims] = plane[:dims], upper - plane[dims]
            count += 1
        if low < lower:
            extra[count, :dims], extra[count, dims] = -plane[:dims], plane[dims] - lower
            count += 1
    inside, left = _cut(body, extra, count)
    if left == 0:
        return False
    if last < 0:
        _mean(inside, left, point)
        return True
    plane_of(last, asked, lines, plane)
    low, high, least, most = _range(plane, inside, left)
    best = _best_middle(last, low, high, asked, lines.error)
    if form_chance(last, best, asked, lines.error)[0] < bound * (1.0 - 1e-12):
        return False
    _between(inside, least, most, (best - low) / (high - low) if high > low else 0.5, point)
    return True


@compiled
def _cut(body: Body, extra: F64, count: int) -> tuple[F64, int]:
    """The corners of what more half-planes leave, and their number."""
    n, dims = body.n, extra.shape[1] - 1
    found = np.empty((len(body.corners) + count + 2, dims))
    assign(found, body.corners[:n, :dims])
    if dims == 1:
        return found, _cut_line(found, n, extra, count)
    if dims == 2:
        other = np.empty_like(found)
        for k in range(count):
            n = clip(found, n, extra[k], other)
            found, other = other, found
        return found, n
    more = np.empty((body.n_planes + count, dims + 1))
    assign(more, body.planes[: body.n_planes])
    assign(more[body.n_planes :], extra[:count])
    return found, vertices(more, len(more), found) if count else n


@compiled
def _cut_line(found: F64, n: int, extra: F64, count: int) -> int:
    low, high = found[0, 0], found[n - 1, 0]
    for k in range(count):
        a, c = extra[k, 0], extra[k, 1]
        if a > 0.0:
            high = min(high, c / a)
        elif a < 0.0:
            low = max(low, c / a)
        elif c < 0.0:
            return 0
    found[0, 0], found[1, 0] = low, high
    return 2 if low <= high else 0


@compiled
def _on_line(body: Body, lines: Lines, asked: Asked, is_convex: bool, point: F64) -> float:
    """The highest probability between two instants: by the golden section, around the best of even steps."""
    low, high = body.corners[0, 0], body.corners[body.n - 1, 0]
    steps = 8 if is_convex else 256
    at, slope = np.empty(1), np.empty(1)
    best, top = low, -1.0
    for k in range(steps + 1):
        at[0] = low + (high - low) * k / steps
        value = weigh(at, lines, asked, slope)
        if value > top:
            best, top = at[0], value
    reach = (high - low) / steps
    left, right = max(low, best - reach), min(high, best + reach)
    while right - left > 1e-10 * (high - low) and top < 1.0:
        one, two = right - _GOLDEN * (right - left), left + _GOLDEN * (right - left)
        at[0] = one
        first_value = weigh(at, lines, asked, slope)
        at[0] = two
        second_value = weigh(at, lines, asked, slope)
        if first_value >= second_value:
            right, here, value = two, one, first_value
        else:
            left, here, value = one, two, second_value
        if value > top:
            best, top = here, value
    point[0] = best
    return top


@compiled
def _on_edges(body: Body, lines: Lines, asked: Asked, point: F64) -> float:
    """The highest probability of two forms over a polygon, where not both can be at their best: it is on an edge.

    Inside, the slopes of the two logarithms would have to cancel out. Either they have different directions, and never
    do, or one, and then all points across it are as good. Along an edge the slope changes its sign once.
    """
    at, slope, best = np.empty(2), np.empty(2), np.empty(2)
    top = -1.0
    for k in range(body.n):
        after = k + 1 if k + 1 < body.n else 0
        low, high = 0.0, 1.0
        share = 0.0
        for step in range(60):
            _between(body.corners, k, after, share, at)
            value = weigh(at, lines, asked, slope)
            if value > top:
                top = value
                assign(best, at)
            fall = 0.0
            for j in range(2):
                fall += slope[j] * (body.corners[after, j] - body.corners[k, j])
            if fall >= 0.0:
                high = share
            else:
                low = share
            # From the one end uphill, then from the other, then between them.
            if (step == 0 and fall >= 0.0) or (step == 1 and fall < 0.0) or abs(fall) * (high - low) < PRECISION:
                break
            share = 1.0 if step == 0 else 0.5 * (low + high)
    assign(point, best)
    return top


@compiled
def _box(body: Body, dims: int) -> tuple[F64, F64]:
    low, high = np.full(dims, np.inf), np.full(dims, -np.inf)
    for k in range(body.n):
        for j in range(dims):
            low[j], high[j] = min(low[j], body.corners[k, j]), max(high[j], body.corners[k, j])
    return low, high


@compiled
def _climb(low: F64, high: F64, body: Body, lines: Lines, asked: Asked, bound: float, point: F64) -> float:
    """The highest probability of one hill, and where, from a box around the set, by the ellipsoid method.

    An ellipsoid that holds the best point is halved, by a plane that its middle breaks, or by the slope of the log
    there, and a smaller one put around what is left.
    """
    dims = len(point)
    x, half, factor = np.empty(dims), np.empty(dims), np.zeros((dims, dims))
    for j in range(dims):
        half[j] = max(0.5 * (high[j] - low[j]), 1e-12 * max(1.0, abs(low[j])))
        x[j], factor[j, j] = 0.5 * (high[j] + low[j]), np.sqrt(dims) * half[j]
    slope = np.empty(dims)
    top = weigh(point, lines, asked, slope)
    for _ in range(250 * dims):
        broken = _most_broken(x, half, body)
        if broken >= 0:
            assign(slope, body.planes[broken, :dims])
        else:
            value = weigh(x, lines, asked, slope)
            if value > top:
                top = value
                assign(point, x)
            if top >= bound * (1.0 - 1e-13):
                break
        length = _halve(x, factor, slope)
        # An ellipsoid so thin that rounding shows holds nothing more to be found.
        if not length > 1e-14 * _size(slope) * _size(half) or (broken < 0 and length < PRECISION):
            break
    return top


@compiled_inline
def _size(numbers: F64) -> float:
    most = 0.0
    for number in numbers:
        most = max(most, abs(number))
    return most


@compiled
def _most_broken(x: F64, half: F64, body: Body) -> int:
    """The plane that a point is furthest beyond; -1 where it is within all of them."""
    worst, broken = 1e-12, -1
    for k in range(body.n_planes):
        size = 1e-300
        for j in range(len(x)):
            size += abs(body.planes[k, j]) * half[j]
        beyond = excess(body.planes[k], x) / size
        if beyond > worst:
            worst, broken = beyond, k
    return broken


@compiled
def _halve(x: F64, factor: F64, slope: F64) -> float:
    """Move an ellipsoid to what it has on the lower side of its middle; gives its old reach along the slope.

    It is the image of the unit ball under `factor`: unlike the product of that with itself, it stays what it is for
    many halvings.
    """
    dims = len(x)
    way = np.zeros(dims)
    length = 0.0
    for j in range(dims):
        for i in range(dims):
            way[j] += factor[i, j] * slope[i]
        length += way[j] * way[j]
    length = np.sqrt(length)
    if length == 0.0:
        return 0.0
    wider = dims / np.sqrt(dims * dims - 1.0)
    flatter = np.sqrt((dims - 1.0) / (dims + 1.0)) - 1.0
    for i in range(dims):
        along = 0.0
        for j in range(dims):
            along += factor[i, j] * way[j] / length
        x[i] -= along / (dims + 1)
        for j in range(dims):
            factor[i, j] = wider * (factor[i, j] + flatter * along * way[j] / length)
    return length


@compiled
def weigh(point: F64, lines: Lines, asked: Asked, slope: F64) -> float:
    """The probability at a point; and into `slope`, how fast its logarithm falls along each axis."""
    _predict(point, lines, asked)
    center, e = lines.center, lines.error
    slope[:] = 0.0
    product = 1.0
    for g in range(len(asked.groups)):
        count, only = forms_of(g, asked)
        if count == 0:
            continue
        if count == 1:
            value, grows = form_chance(only, middle_of(only, asked, center), asked, e)
            if value > 0.0:
                _add_slope(only, -grows / value, lines, asked, slope)
        else:
            value = joint_chance(g, center, asked, e)
            if value > 0.0:
                _add_joint_slope(g, value, center, lines, asked, slope)
        if value <= 0.0:
            _turn_back(g, center, lines, asked, slope)
            return 0.0
        product *= value
    return product


@compiled
def _add_slope(f: int, falls: float, lines: Lines, asked: Asked, slope: F64) -> None:
    """Add what falls so fast with the prediction of a form."""
    u, v = asked.forms[f, 0], asked.forms[f, 1]
    slope[asked.axis[u]] += falls * lines.rate[u]
    if v >= 0:
        slope[asked.axis[v]] -= falls * lines.rate[v]


@compiled
def _add_joint_slope(g: int, value: float, center: F64, lines: Lines, asked: Asked, slope: F64) -> None:
    """The same for a group of forms, by a small step of each of its values."""
    for v in range(len(center)):
        if _is_used(v, g, asked):
            step = 1e-8 * (_size(lines.error) + 1e-3 * abs(center[v]))
            here = center[v]
            center[v] = here + step
            after = joint_chance(g, center, asked, lines.error)
            center[v] = here
            slope[asked.axis[v]] += (value - after) / (step * value) * lines.rate[v]


@compiled
def _turn_back(g: int, center: F64, lines: Lines, asked: Asked, slope: F64) -> None:
    """Where a group has no probability at all, the way down is away from the sets of its forms."""
    slope[:] = 0.0
    for f in range(asked.groups.shape[1]):
        if asked.groups[g, f]:
            middle, error = middle_of(f, asked, center), error_of(f, asked, lines.error)
            low, high = asked.sets[asked.first[f], 0] + error, asked.sets[asked.first[f + 1] - 1, 1] - error
            if middle < low:
                _add_slope(f, -1.0, lines, asked, slope)
            elif middle > high:
                _add_slope(f, 1.0, lines, asked, slope)


@compiled
def _is_used(v: int, g: int, asked: Asked) -> bool:
    for f in range(asked.groups.shape[1]):
        if asked.groups[g, f] and (asked.forms[f, 0] == v or asked.forms[f, 1] == v):
            return True
    return False


@compiled
def _several_hills(body: Body, lines: Lines, asked: Asked, bound: float, point: F64) -> float:
    """The highest probability where there may be several hills."""
    dims = len(point)
    low, high = _box(body, dims)
    middle, tried, at, tops = point.copy(), np.empty(dims), np.zeros((2, dims)), np.zeros(2)
    slope, nearer_low, nearer_high = np.empty(dims), np.empty(dims), np.empty(dims)
    for i in range(body.n):
        for j in range(i, body.n):
            for along in range(1, 4):
                for out in range(7):
                    _between(body.corners, i, j, 0.25 * along, tried)
                    for k in range(dims):
                        tried[k] = middle[k] + out / 6.0 * (tried[k] - middle[k])
                    _keep_two(tried, weigh(tried, lines, asked, slope), tops, at, low, high)
    best, best_point = 0.0, middle.copy()
    for hill in range(2):
        if tops[hill] > 0.0:
            assign(point, at[hill])
            for k in range(dims):
                nearer_low[k] = max(low[k], at[hill, k] - 0.25 * (high[k] - low[k]))
                nearer_high[k] = min(high[k], at[hill, k] + 0.25 * (high[k] - low[k]))
            value = _climb(nearer_low, nearer_high, body, lines, asked, bound, point)
            if value > best:
                best = value
                assign(best_point, point)
    assign(point, best_point)
    return best


@compiled
def _keep_two(tried: F64, value: float, tops: F64, at: F64, low: F64, high: F64) -> None:
    """Keep the best point, and the best that is not near it."""
    near = True
    for k in range(len(tried)):
        near &= abs(tried[k] - at[0, k]) <= 0.25 * (high[k] - low[k])
    if value > tops[0]:
        if not near:
            tops[1], at[1] = tops[0], at[0]
        tops[0], at[0] = value, tried
    elif value > tops[1] and not near:
        tops[1], at[1] = value, tried
