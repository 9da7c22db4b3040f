"""The mutants of `mutate.py`: a line of a kernel, its broken version, and the tests that must fail with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """A text that a file contains exactly once, and the broken text that replaces it.

    Attributes
    ----------
    file : str
        The path below `src/anabranch`.
    before, after : str
        The text and its broken version.
    tests : sequence of str
        The tests that must fail, as pytest takes them.
    compiled : bool
        Whether the tests need compiled kernels; otherwise they run as plain Python.
    """

    file: str
    before: str
    after: str
    tests: Sequence[str]
    compiled: bool

    @property
    def description(self) -> str:
        """The mutant in one line."""
        return " ".join(f"{self.file}: {self.before} -> {self.after}".split())

    def apply(self, text: str) -> str:
        """Return the text of the file with the broken line."""
        if text.count(self.before) != 1:
            raise ValueError(f"{self.file} has {text.count(self.before)} matches for {self.before!r}, not 1")
        return text.replace(self.before, self.after)


def _mutants(
    folder: str, tests: Sequence[str], lines: Sequence[tuple[str, str, str]], compiled: bool = False
) -> list[Mutant]:
    paths = [f"tests/{test}" for test in tests]
    return [Mutant(f"{folder}/{file}.py", before, after, paths, compiled) for file, before, after in lines]


MUTANTS = [
    # ------------------------------------------------------------ transport
    *_mutants("transport", ["transport/test_watermark.py"], [
        ("watermark", "return newest + 1", "return newest"),
        ("watermark", "Progress(min(watermarks)", "Progress(max(watermarks)"),
    ]),
    # Compiled: the search for millions of answers takes long in plain Python.
    *_mutants("sequence", ["transport/test_limits.py"], [
        ("kernel/search", "stopped = event", "stopped = -1"),
    ], compiled=True),
    *_mutants("constrain", ["transport/test_limits.py"], [
        ("operator", "if run.stopped is not None:", "if False:"),
        ("operator", "self._waiting.count(query) + len(possible) > self._spec.max_answers", "False"),
    ], compiled=True),
    *_mutants("transport", ["transport/test_inbox.py"], [
        ("watermark", "times < (self.before if", "times <= (self.before if"),
        ("watermark", "self.at = max(self.at, to)", "self.at = max(BEGINNING, to)"),
    ]),
    *_mutants("transport", [
        "inference/test_stream.py::test_a_query_can_use_streams_with_different_steps",
        "inference/test_stream.py::test_any_split_gives_the_answers_of_an_archive",
    ], [
        ("watermark", "return min([to, *(int", "return max([to, *(int"),
    ], compiled=True),
    # ------------------------------------------------------------ files
    *_mutants("files/kernel", ["files/test_text.py"], [
        ("csv_cells", "column < 0 or (fixed and column != len(slots))", "column < 0"),
        ("csv_cells", "kinds[slots[missing], line] = NULL", "kinds[slots[missing], line] = TEXT"),
        ("json_cells", "if kinds[slot, line] != 255:", "if kinds[slot, line] > 255:"),
        ("numbers", "scale = -np.int64(at - point)", "scale = np.int64(at - point)"),
        ("numbers", "return nearest, KNOWN if nearest == value + (rest - margin) else LONG", "return value, KNOWN"),
        ("times", "(-60 if data[at] == MINUS else 60)", "60"),
        ("times", "shifted = year - 1 if month <= 2 else year", "shifted = year"),
        ("times", "day <= length", "day <= 31"),
    ], compiled=True),
    # ------------------------------------------------------------ events
    *_mutants("events", ["events/test_members.py"], [
        ("members", "self.after[self._added] = newest", "self.after[self._added] = newest - 1"),
        ("members", "self._added[queries[still]] = False", "self._added[queries[still]] = True"),
        ("batch", "order = np.lexsort((variable, event))", "order = np.lexsort((event, variable))"),
    ], compiled=True),
    # ------------------------------------------------------------ PATTERN
    *_mutants("pattern/kernel", [
        "pattern/test_kernel.py::test_rows_are_ordered_as_lexsort_orders_them",
        "pattern/test_kernel.py::test_rows_in_great_disorder_are_ordered_as_well",
        "pattern/test_kernel.py::test_cleaning_keeps_each_row_once_and_no_group_above_one",
        "pattern/test_kernel.py::test_a_sum_above_one_by_a_rounding_error_is_scaled",
    ], [
        ("order", "(j >= hi or _not_after(", "(j > hi or _not_after("),
        ("order", "if value[row] == value[before] and p[row] == p[before]:", "if value[row] == value[before]:"),
        ("order", "if total > 1.0 + TOLERANCE:", "if total > 1.0:"),
    ]),
    *_mutants("pattern/kernel", [
        "pattern/test_kernel.py::test_letters_of_several_keys_are_combined",
        "pattern/test_against_worlds.py::test_batch_equals_worlds",
    ], [
        ("chains", "spare[union[a, b]] += mixed[a] * of_key[b]", "spare[union[a, b]] = mixed[a] * of_key[b]"),
        ("chains", "            left -= p[rows[j]]", "            left += p[rows[j]]"),
        ("independent", "key[rows[hi - 1]] == key[first]", "key[rows[lo]] == key[first]"),
        ("joint", "for b in range(a + 1, len(axes)):", "for b in range(a, len(axes)):"),
        ("joint", "for a in range(len(axes) - 1, -1, -1):", "for a in range(len(axes)):"),
    ]),
    *_mutants("pattern/kernel", [
        "pattern/test_kernel.py::test_chains_of_one_call_do_not_affect_each_other",
        "pattern/test_kernel.py::test_the_joint_kernel_agrees_with_the_single_one",
    ], [
        ("single", "at[then, live_codes[then, j]] = -1", "at[then, live_codes[then, j]] = j"),
        ("single", "delta[q, s] == q and not accept[q, s]", "delta[q, s] == q"),
    ]),
    *_mutants("pattern/kernel", [
        "pattern/test_within.py",
    ], [
        ("chains", "weights[tick[q]] += spare[q]", "weights[tick[q]] = spare[q]"),
        ("independent", "age(ticks[clock[first]], weights[c], after)", "age(ticks[clock[first]], weights[0], after)"),
        ("single", "age(ticks[clock[rows[k]]], live[now, i], aged)", "age(ticks[clock[rows[0]]], live[now, i], aged)"),
        ("joint", "for base in range(0, len(weights), n_states):", "for base in range(0, n_states, n_states):"),
    ]),
    *_mutants("pattern/kernel", ["pattern/test_bindings.py::test_batch_equals_worlds"], [
        ("single", "row_p[row] = true_here", "row_p[row] = true"),
    ]),
    *_mutants("pattern/kernel", [
        "pattern/test_kernel.py::test_the_limit_of_a_joint_state",
    ], [
        ("joint", "* (key_end - k + 1)", "* (key_end - k)"),
        ("joint", "if needed > limit:", "if needed > 2 * limit:"),
    ]),
    *_mutants("pattern", ["explanation/test_pattern.py::test_histories_are_the_most_likely_ones"], [
        ("likeliest", "way.log_p > known.log_p", "way.log_p < known.log_p"),
        ("likeliest", "total[value, letter] += p", "total[value, letter] = p"),
    ]),
    *_mutants("pattern", ["explanation/test_pattern.py::test_a_chain_without_events_at_the_instant_is_not_true"], [
        ("likeliest", "if instant != t:", "if False:"),
    ]),
    *_mutants("explanation", ["explanation/test_pattern.py::test_effects_are_those_of_hidden_events"], [
        ("markov", "after[following] += p * q", "after[following] += q"),
        ("markov", "max(0.0, 1.0 - sum(following.values()))", "0.0"),
    ]),
    *_mutants("pattern", ["pattern/test_early.py"], [
        ("early", "watermark.to_end(), ended=True", "watermark, ended=False"),
    ]),
    *_mutants("pattern", [
        "pattern/test_combination.py::test_the_union_of_independent_sets",
        "pattern/test_combination.py::test_batch_equals_worlds",
    ], [
        ("product", "united[:, one | other] +=", "united[:, one & other] +="),
        ("product", "p[:, 0] = 1.0 - p[:, 1:].sum(axis=1)", "p[:, 0] = 1.0"),
    ]),
    *_mutants("pattern", ["pattern/test_combination.py::test_any_split_into_micro_batches_equals_worlds"], [
        ("combined_machine", "after |= {number_on(partial, first)", "after |= {number_on(partial, 0)"),
        ("joint", "following, true = steps[partials, letter]", "following, true = steps[partials, letter][0], 1"),
    ]),
    *_mutants("pattern", ["pattern/test_combination.py::test_an_exact_and_a_sampled_chain_of_a_group_are_combined"], [
        ("combined_group", "sets >> operand & 1 == 1", "sets == operand"),
    ]),
    *_mutants("pattern", ["pattern/test_combination.py::test_a_negation_has_a_row_at_every_instant"
                          "_of_all_its_streams_from_the_first_of_its_key"], [
        ("combined", "+ 1, END, np.int64)", "+ 1, 0, np.int64)"),
    ]),
    *_mutants("pattern", [
        "pattern/test_carried.py",
    ], [
        ("joint", "states[state] = states.get(state, 0.0) + counted", "states[state] = counted"),
        ("joint", "if outcomes.model == kernel.MARKOV and outcomes.key not in axes:", "if outcomes.key not in axes:"),
        ("history", "after[value] += weight * p", "after[value] = weight * p"),
        ("chain", "np.uint64(mix(np.uint64(t & _BITS)))", "np.uint64(id(self) & _BITS)"),
    ]),
    *_mutants("pattern", [
        "pattern/test_streams.py::test_no_split_changes_sampled_worlds_and_intervals_contain_the_truth",
    ], [
        ("sampling", "(code == index)[number]", "(code != index)[number]"),
    ]),
    *_mutants("transport", [
        "transport/test_watermark.py::test_a_bounded_stream_holds_nothing_back_once_its_rows_have_arrived",
    ], [
        ("watermark", "if self._newest[stream] > BEGINNING:", "if self._newest[stream] >= BEGINNING:"),
    ]),
    # ------------------------------------------------------------ SEQUENCE
    *_mutants("sequence/kernel", [
        "sequence/test_examples.py",
        "sequence/test_against_enumeration.py::test_batch_gives_every_match_with_its_probability",
    ], [
        ("queues", "return now - t > window.length +", "return now - t >= window.length +"),
        ("queues", "if times[middle] < now:", "if times[middle] <= now:"),
        ("queues", "if times[middle] <= now:", "if times[middle] < now:"),
        ("search", "(expired and (path.extended[level] or j == 0))", "(expired and j == 0)"),
        ("search", "scores.falling[table] and total +", "scores.rising[table] and total +"),
        ("queues", "queues.bound[queues.peak[end - 1]] <= bound", "queues.bound[queues.peak[end - 1]] >= bound"),
        ("queues", "gap_between(scores, queues.time[queues.low[i]], now)",
         "gap_between(scores, queues.time[queues.end[i] - 1], now)"),
        ("queues", "scores.unit - gap_between(scores, t, now)", "scores.unit + gap_between(scores, t, now)"),
        ("conditions", "if item < end and times[item] < until", "if item < end and times[item] <= until"),
        ("conditions", "rest = 1.0 - chances.mass[chances.instance[event]]", "rest = 1.0 - chances.p[event]"),
        ("conditions", "first_past(times, item, end, t[bound[positives[first]]], window)", "end"),
        ("conditions", "conditions.due_guard_starts[low + 1], conditions.due_guard_starts[high + 1]",
         "conditions.due_guard_starts[low + 1], conditions.due_guard_starts[high]"),
        ("search", "(trigger >= 0 and t[trigger] < now)", "(trigger >= 0 and t[trigger] <= now)"),
        ("lists", "if not keyed[c]:", "if keyed[c]:"),
        ("programs", "if members[middle] < number:", "if members[middle] <= number:"),
        ("programs", "return 1.0 - number", "return number"),
        ("programs", "(code == OTHERWISE and is_missing)", "code == OTHERWISE"),
    ]),
    *_mutants("sequence/kernel", ["sequence/test_runs.py"], [
        ("runs", "begin = first_after(times, begin, end, t[match.last[low]])",
         "begin = first_at(times, begin, end, t[match.last[low]])"),
        ("runs", "match.last[component] = event", "match.last[component] = match.first[component]"),
        ("runs", "return end - begin", "return end - begin - 1"),
        ("runs", "gap = gap_between(scores, last, t[match.first[high]])",
         "gap = gap_between(scores, first, t[match.first[high]])"),
        ("runs", "total *= 1.0 - none_happened(chances, listed)", "total *= none_happened(chances, listed)"),
        ("runs", "begin = first_within(times, begin, end, t[final], window)", "pass"),
        ("runs", "return begin, first_past(times, begin, end, t[opening], window)", "return begin, end"),
        ("runs", "for guard in range(len(runs.components), len(conditions.guards)):",
         "for guard in range(len(conditions.guards), len(conditions.guards)):"),
    ]),
    *_mutants("sequence/kernel", ["test_decimal_edges.py"], [
        ("queues", "window.length + window.rounding * max(abs(t), abs(now))", "window.length"),
        ("programs", "return np.rint(apart * scale) / scale", "return apart"),
    ], compiled=True),
    *_mutants("sequence", ["sequence/test_early.py"], [
        ("operator", "is_new[matcher.roles.event[~batch.roles[SEEN]]]", "is_new[matcher.roles.event]"),
        ("matching", "self._t[is_new].max() + window", "self._t[is_new].max()"),
    ], compiled=True),
    *_mutants("sequence", [
        "sequence/test_gaps.py::test_a_table_is_the_nested_integral",
        "sequence/test_gaps.py::test_a_posterior_table_is_the_ratio_of_nested_integrals",
        "sequence/test_gaps.py::test_a_table_agrees_with_the_oracle",
        "sequence/test_gaps.py::test_joined_tables_give_the_same_scores",
        "sequence/test_gaps.py::test_the_declared_properties_of_a_table_hold",
        "sequence/test_gaps.py::test_a_delay_that_ends_with_the_gap_has_happened_despite_rounding",
        "sequence/test_gaps.py::test_empirical_delays_equal_the_explicit_sum",
    ], [
        ("kernel/tables", "tables.guide[near + 1] + 1, gap", "tables.guide[near + 1], gap"),
        ("kernel/tables", "if breaks[piece + half] <= x else 0", "if breaks[piece + half] < x else 0"),
        ("kernel/tables", "if cut > ends[row + 1]:", "if cut < ends[row + 1]:"),
        ("gaps", "return above / (miss * below + above)", "return above / (below + above)"),
        ("gaps", "factor(x) * above(x) + miss * onward(x)", "factor(x) * above(x) + onward(x)"),
        ("gaps", "if self.segments[-1]:", "if self.segments[0]:"),
        ("pieces", "np.nextafter(total, np.inf), total)", "total, total)"),
        ("pieces", "@ _BERNSTEIN.T).max()", "@ _BERNSTEIN.T).min()"),
    ], compiled=True),
    # ------------------------------------------------------------ RELATE
    *_mutants("relate/kernel", [
        "relate/test_classes.py::test_classes_are_the_possible_outcomes_of_segments",
    ], [
        ("classes", "(end + 3) // 4", "(end + 2) // 4"),
        ("classes", "least <= count", "least < count"),
        ("classes", "(partners[last] - partners[first + 1])", "(partners[last] - partners[first])"),
        ("classes", "count <= most", "count < most"),
    ]),
    *_mutants("relate/kernel", [
        "relate/test_kernel.py::test_the_kernel_equals_the_oracle",
        "relate/test_kernel.py::test_the_unit_of_time_does_not_matter",
    ], [
        ("gaps", "power *= 1.0 - share", "power *= share"),
        ("gaps", "lgamma(count + 1.0)", "lgamma(count + 0.5)"),
        ("marks", "instants[n_marks - 1] < instant:", "instants[n_marks - 1] <= instant:"),
        ("sweep", "dead = floor + 1 - (n_segments - i0 // 2)", "dead = floor + 2 - (n_segments - i0 // 2)"),
        ("sweep", "counts[max(0, c - floor)] +=", "counts[0] +="),
        ("sweep", "rates[2, j - 1] / n", "rates[2, j] / n"),
        ("sweep", "ragged_a = i0 + open_a, 0, 0, 0, False", "ragged_a = i0 + open_a, 0, 0, sure_a, False"),
        ("sweep", "row, begun_tie, hit_tie, count", "row, begun, hit, count"),
    ]),
    *_mutants("relate/kernel", ["relate/test_segment_conditions.py::test_the_sweep_uses_the_table_of_each_segment"], [
        ("sweep", "row = rows[step * (i0 >> 1)] + j0", "row = rows[0] + j0"),
        ("sweep", "row = rows[step * ((i0 + i) >> 1)] + j0", "row = rows[0] + j0"),
        ("phases", "step * (n_before >> 1))", "0)"),
    ]),
    *_mutants("relate/kernel", [
        "relate/test_durations.py::test_the_kernel_equals_quadrature_for_one_and_two_lost_events",
        "relate/test_durations.py::test_without_distributions_all_placements_are_equally_likely",
        "relate/test_durations.py::test_rates_may_differ_by_a_million",
        "relate/test_durations.py::test_a_lost_visit_that_is_much_shorter_than_its_window",
    ], [
        ("phases", "chains.rates[event] if event >= begins else 0.0", "chains.rates[max(event, begins)]"),
        ("phases", "following[k] += weight * (fastest - decay[k])", "following[k] += weight * fastest"),
        ("phases", "if hi[x] <= before:", "if hi[x] < before:"),
        ("phases", "min(c + classes.hit[here, q], n_counts - 1)", "min(c, n_counts - 1)"),
        ("marks", "else lo[x - 1]", "else lo[x]"),
    ]),
    *_mutants("relate/kernel", ["relate/test_kernel.py::test_the_length_of_a_window_may_exceed_64_bits"], [
        ("gaps", "np.float64(later) - np.float64(earlier)", "np.float64(later)"),
    ]),
    # ------------------------------------------------------------ MONITOR
    *_mutants("monitor/kernel", [
        "monitor/test_buffer.py::test_the_buffer_equals_the_oracle_after_each_arrival",
        "monitor/test_buffer.py::test_the_neighbour_with_the_smaller_error_replaces_a_discarded_prediction",
        "monitor/test_buffer.py::test_a_late_prediction_with_the_least_contribution_is_discarded_itself",
        "monitor/test_buffer.py::test_the_buffer_of_a_job_equals_the_oracle",
        "monitor/test_buffer.py::test_a_buffer_that_is_never_full_changes_nothing",
        "monitor/test_buffer.py::test_a_stream_that_is_ahead_removes_nothing_that_the_other_needs",
    ], [
        ("buffer", "0.5 * (first * first + last * last)", "0.5 * abs(first * first - last * last)"),
        ("buffer", "or (policy != LEAST_CONTRIBUTION and k == p)", "or k == p"),
        ("buffer", "victim, after) < _error_without(", "victim, after) > _error_without("),
        ("buffer", "newest.min() - rules.width", "newest.max() - rules.width"),
        ("buffer", "max(versions.begin[k], versions.time[p] - versions.time[k])", "versions.begin[k]"),
        ("buffer", "after <= within and before <= within", "after <= 0.0 and before <= 0.0"),
    ]),
    *_mutants("monitor/kernel", ["monitor/test_nearest.py::test_who_is_nearest"], [
        ("ranks", "is_kept = nearer_keys < k and", "is_kept = nearer_keys <= k and"),
        ("ranks", "nearer_keys -= 1 if n_nearer[key] > 0 else 0", "nearer_keys -= 1 if step[order[e]] < 0 else 0"),
        ("ranks", "if candidates.key[i] == candidates.key[j]:", "if i == j:"),
        ("ranks", "0.5 * (b + math.copysign(", "0.5 * (b - math.copysign("),
        ("ranks", "or _is_nearer(i, j, cuts[c + 1] - third, paths)", ""),
        ("ranks", "if n > 0 and since - found[n - 1, 1] <= shortest:", "if n > 0:"),
    ]),
    *_mutants("monitor", [
        "monitor/test_nearest.py::test_candidates_that_ended_before_the_watermark_still_count",
        "monitor/test_nearest.py::test_every_bucket_answers_for_its_own_taxis",
    ], [
        ("nearest_operator", "np.unique(candidates.members[is_open[group]], axis=0)", "pending.members"),
        ("nearest_operator", "held.able[elsewhere] &= ~1", "held.able[elsewhere] &= ~0"),
    ]),
    *_mutants("monitor/kernel", [
        "monitor/test_probabilities.py::test_one_error",
        "monitor/test_probabilities.py::test_the_difference_of_two_errors",
    ], [
        ("distributions", "left * left / (8.0 * wide * narrow)", "left * left / (4.0 * wide * narrow)"),
        ("distributions", "weight * (1.0 - at_most(u - z, e2, s2))", "weight * at_most(u - z, e2, s2)"),
        ("distributions", "return 0.5 * (x + e) / e", "return 0.5 * (x - e) / e"),
    ]),
    *_mutants("monitor/kernel", [
        "monitor/test_against_polygons.py::test_batch_gives_the_regions_of_the_oracle",
        "monitor/test_sampled.py::test_two_operands",
        "monitor/test_sampled.py::test_three_operands",
    ], [
        ("candidates", "meets &= _cell(max(low[k", "meets |= _cell(max(low[k"),
        ("candidates", "if cell[axis] < _cell(high", "if cell[axis] + 1 < _cell(high"),
        ("polygons", "share = here / (here - there)", "share = there / (there - here)"),
        ("polygons", "max(corners[k, 0], corners[k, 1])", "min(corners[k, 0], corners[k, 1])"),
        ("lines", "low, high = bounds[0] - widen * error", "low, high = bounds[0] + widen * error"),
        ("regions", "planes[n, dims] -= low", "planes[n, dims] += low"),
    ]),
    *_mutants("monitor/kernel", [
        "monitor/test_against_polygons.py::test_batch_gives_the_regions_of_the_oracle",
        "monitor/test_probabilities.py::test_without_rates_the_probability_is_the_share_of_true_values",
        "monitor/test_probabilities.py::test_no_instant_is_more_probable_than_the_answer",
        "monitor/test_probabilities.py::test_the_sample_is_near_the_most_probable_instant",
    ], [
        ("probabilities", "elif side == 1:", "elif side == 0:"),
        ("probabilities", "sign = 1.0 if plus == v else -1.0", "sign = 1.0"),
    ]),
    *_mutants("monitor/kernel", [
        "monitor/test_sampled.py::test_a_contact_with_an_open_side_is_no_answer",
    ], [
        ("polygons", "if beyond < -plane[dims + 1]:", "if beyond <= 0.0:"),
    ]),
    *_mutants("monitor/kernel", ["monitor/test_thin_regions.py"], [
        ("polygons", "if here <= slack:", "if here <= 0.0:"),
        ("polygons", "if along > high:", "if along > low:"),
        ("polygons", "> planes[k, len(point) + 1]:", "> 0.0:"),
        ("lines", "if high < low <= high + ROUNDING * (abs(low) + abs(high) + 2.0 * error):", "if high < low <= high:"),
        ("regions", "> first_error + last_error:", "> 0.0:"),
        ("highest", "if body.n <= 2:", "if body.corners.shape[1] == 1:"),
    ]),
    *_mutants("monitor/kernel", ["monitor/test_highest.py"], [
        ("probabilities", "slope -= sign * density", "slope += sign * density"),
        ("highest", "if lower == -np.inf:\n        return low", "if lower == -np.inf:\n        return high"),
        ("ellipsoid", "x[i] -= lower * along", "x[i] += lower * along"),
        ("lines", "slope[constraints.axis[v]] -= decline * lines.rate[v]",
         "slope[constraints.axis[v]] += decline * lines.rate[v]"),
        ("highest", "min(1.0, best + 1.0 / steps)", "min(1.0, best)"),
    ]),
    *_mutants("monitor/kernel", ["monitor/test_expressions.py"], [
        ("distributions", "return min(1.0, 0.5 * below / last), 0.5 * dense / last", "return 0.5 * below, 0.5 * dense"),
        ("distributions", "end = max(cuts[k], z - last)", "end = max(cuts[k], z)"),
        ("distributions", "else -numbers[j]", "else numbers[j]"),
    ]),
    *_mutants("monitor", ["monitor/test_or.py"], [
        ("kernel/lines", "rise[j] += value * slope[j]", "rise[j] -= value * slope[j]"),
        ("kernel/lines", "begin = g + 1", "begin = g"),
        ("formulas", "return ALL if common(own, numbers) == numbers else ()", "return ALL"),
        ("union_tables", "if not bound.keys() & exact.keys()", "if bound"),
        ("unions", "return matches(np.array([0.5 * (low + high)]))", "return True"),
    ]),
    *_mutants("monitor", [
        "monitor/test_accelerated.py::test_exact_values",
        "monitor/test_accelerated.py::test_a_contact_of_decimals",
        "monitor/test_accelerated.py::test_each_prediction_is_accelerated_from_its_own_time",
        "monitor/test_accelerated.py::test_a_pair_that_leaves_and_returns_has_two_answers",
        "monitor/test_accelerated.py::test_a_path_between_its_ends_is_found",
        "monitor/test_accelerated.py::test_alternatives_that_touch_are_connected_where_they_match",
    ], [
        ("predictions", "instants = np.stack([begin, end, np.clip(turn, begin, np.maximum(begin, end))])",
         "instants = np.stack([begin, end])"),
        ("kernel/roots", "return add_mark(base / larger, slack / slope, marks, n)", "return n"),
        ("kernel/roots", "bend += 6.0 * path[k, 2] * path[k, 2]", "bend -= 6.0 * path[k, 2] * path[k, 2]"),
        ("kernel/paths", "value - since * (rate - since * bend)", "value - since * rate"),
        ("kernel/paths", "return excess > slack if is_open", "return excess > -slack if is_open"),
        ("unions", "0.5 * self.accelerations[rows, columns]) * since", "self.accelerations[rows, columns]) * since"),
    ]),
    *_mutants("monitor/kernel", ["monitor/test_trees.py"], [
        ("trees", "total += _at_most(v, x - low, curves)", "total += _at_most(v, x + low, curves)"),
        ("trees", "n = _add(ends, n, curves.ends[k] + bound)", "n = _add(ends, n, curves.ends[k])"),
        ("trees", "is_inside |= constraints.sets[j, 0] < number", "is_inside |= constraints.sets[j, 0] < x"),
        ("trees", "if count <= 4 and", "if count <= 8 and"),
    ]),
    *_mutants("monitor/kernel", ["monitor/test_certain.py"], [
        ("certain", "1.0, -1.0, body.planes[0, dims + 1]", "-1.0, 1.0, body.planes[0, dims + 1]"),
        ("certain", "total, size = below, abs(below)", "total, size = 0.0, abs(below)"),
        ("certain", "return (2.0 * middle - end, end)", "return (lower, end)"),
        ("certain", "if top < level - PRECISION:", "if top < level:"),
    ]),
    *_mutants("monitor/kernel", ["monitor/test_distance.py"], [
        ("shapes", "max(abs(x) + ex * -which, 0.0)", "max(abs(x) + ex * which, 0.0)"),
        ("shapes", "low, high = max(low, begin), min(high, end)", "low, high = max(low, begin), max(high, end)"),
        ("shapes", "inner_slack = slack if inner_open else -slack", "inner_slack = slack"),
        ("distances", "weight * cosine * (below_top - below_bottom)", "weight * (below_top - below_bottom)"),
        ("distances", "p - inner, by_x - inner_by_x", "p + inner, by_x - inner_by_x"),
        ("curves", "if 2.0 * far <= tolerance or", "if 0.01 * far <= tolerance or"),
        ("curves", "middle[j] += 0.5 * max(last, 0.0) * direction[j]", "middle[j] += max(last, 0.0) * direction[j]"),
    ]),
    *_mutants("monitor/kernel", ["monitor/test_polygon.py"], [
        ("zones", "slack = slack if which == PREDICTED else -slack", "slack = abs(slack)"),
        ("zones", "return inside and not touches if which == FARTHEST", "return inside if which == FARTHEST"),
        ("zones", "widen = abs(nx) * ex + abs(ny) * ey", "widen = max(ex, ey)"),
        ("zones", "pieces[n - 1, 1], pieces[n - 1, 3] = after, 1.0", "pieces[n - 1, 3] = 1.0"),
        ("distances", "p += weight * (y1 - y0) * below", "p += weight * (x1 - x0) * below"),
        ("zones", "and u1 < u0:", "and u1 > u0:"),
        ("zones", "return inside >= 2.0 * half - slack if", "return inside >= 0.5 * half if"),
        ("zones", "inside = 2.0 * half - inside", "inside = half - inside"),
        ("distances", "slice_part(y1, x1, y0, x0, slack)", "slice_part(y0, x0, y1, x1, slack)"),
        ("highest", "or not low <= level <= high or", "or low <= level <= high or"),
        ("certain", "_first_reached(instants[::-1].copy(), point,", "_first_reached(instants, point,"),
        ("certain", "n = _add_instant(shapes.edges[k, axis], plane, interval, instants, n)", "pass"),
        ("certain", "            inside = instant\n            break", "            break"),
    ]),
    *_mutants("monitor", ["monitor/test_globe.py"], [
        ("globe", "2 * RADIUS * math.tan(angle - reach)", "2 * RADIUS * math.tan(angle)"),
        ("globe", "share = 0.5 * (near + far) / from_origin", "share = 1.0"),
        ("kernel/shapes", "return 1.0 + (least / (2.0 * radius)) ** 2", "return 1.0 + (least / radius) ** 2"),
        ("kernel/shapes", "shapes.stated[s, 0] * inner", "shapes.stated[s, 0]"),
    ]),
    *_mutants("monitor", ["monitor/test_windows.py"], [
        ("kernel/regions", "lines.size[v] = 0.0, 1.0, 0.0, reach", "lines.size[v] = 1.0, 1.0, 0.0, reach"),
        ("analysis", "if pair is None or window == max(self.windows[pair]):", "if True:"),
        ("analysis", "(pair, min(windows))", "(pair, max(windows))"),
        ("windows", "own if isinstance(own, Constant) else window", "window"),
    ]),
    *_mutants("monitor", ["monitor/test_polygon.py"], [
        ("polygons", "(_doubled_area(ring) > 0) != is_hole", "(_doubled_area(ring) > 0)"),
        ("overlay", "_minus(edge[1], edge[0]), direction) < 0", "_minus(edge[1], edge[0]), direction) > 0"),
        ("overlay", "        elif _is_inside(middle, edges):", "        elif False:"),
        ("overlay", "return [point for point in other if _is_on(point, edge)]", "return []"),
    ]),
    # ------------------------------------------------------------ CONSTRAIN
    # Compiled: in plain Python a record has no fields.
    *_mutants("constrain/kernel", [
        "constrain/test_against_loops.py::test_batch_gives_every_solution_once",
        "constrain/test_against_loops.py::test_any_split_gives_the_answers_of_the_whole",
    ], [
        ("checks", "if how == LESS:\n        return left < right\n", "if how == LESS:\n        return left <= right\n"),
        ("checks", "return left > right + slack", "return left >= right + slack"),
        ("checks", "(j, i) if swapped else (i, j)", "(i, j)"),
        ("search", "chosen[depth, POINTER] if u == chosen_variable else spans[depth, u, 1]", "spans[depth, u, 1]"),
        ("store", "items[index - 1].t >= earlier", "items[index - 1].t > earlier"),
        ("arrivals", "least = min(least, pairs[", "least = min(least, -pairs["),
    ], compiled=True),
    *_mutants("constrain/kernel", ["constrain/test_awaited.py", "constrain/test_negation.py"], [
        ("companions", "events[roles[by_list[index]].event].t <= last", "events[roles[by_list[index]].event].t < last"),
        ("companions", "max(first, low), min(last, high)", "max(first, low), max(last, high)"),
        ("arrivals", "+ variables[roles[role].variable].longest + 4", "+ 4"),
    ], compiled=True),
    *_mutants("constrain", ["constrain/test_awaited.py", "constrain/test_negation.py"], [
        ("waiting", "solutions) < now", "solutions) <= now"),
        ("placement", "(before, after) if is_awaited else (after,)", "(after,)"),
    ], compiled=True),
    *_mutants("constrain/kernel", ["constrain/test_sets.py::test_the_sets_of_any_graph_are_found"], [
        ("sets", "for index in range(levels[depth, START], at):", "for index in range(at, at):"),
        ("sets", "n_open > 0 and depth + 2 + n_open >= least", "n_open > 0 and depth + 2 + n_open > least"),
    ], compiled=True),
    *_mutants("constrain", ["constrain/test_location_errors.py"], [
        ("location_errors", "self.is_upper == (semantics == MAY)", "self.is_upper"),
        ("location_errors", "return self.bound <= 0 or self.bound > greatest", "return self.bound > greatest"),
        ("binding", "semantics = OPPOSITE[semantics]", "pass"),
        ("feasibility", "np.where(is_inside, missed, -missed)", "missed"),
        ("feasibility", "is_around != is_inside)", "~is_around)"),
        ("feasibility", "return [middle, middle + across, middle - across]", "return [middle]"),
        ("factors", "if count > 1\n", "if count > 2\n"),
    ], compiled=True),
    *_mutants("constrain", ["constrain/test_expected.py"], [
        ("nearness", "chance[is_point] = _share(", "chance[is_point] = 0.0 * _share("),
        ("nearness", "certain *= _share(space, np.abs(bound - large), small, gap, -inside)", "certain *= 0.0"),
        ("nearness", "inside = np.where(is_wide, -large - slack, large - bound - gap)", "inside = -large - slack"),
        ("nearness", "np.where(gap > small, -small, small - 2 * gap)", "-small"),
        ("nearness", "return np.minimum(radius, 2 * (np.pi - gap) - radius)", "return radius"),
        ("nearness", "np.where(is_far, np.pi - gap, gap)", "gap"),
        ("nearness", "is_small = angle < _SMALL_ANGLE", "is_small = angle < 0"),
        ("worlds", "np.sqrt(share)[:, None] * np.column_stack", "share[:, None] * np.column_stack"),
        ("true_locations", "chance -= chance_within(", "chance *= 1 - chance_within("),
    ], compiled=True),
    *_mutants("constrain", ["constrain/test_blurred_areas.py"], [
        ("areas", "np.where(is_outline, 1.0, -1.0)", "1.0"),
        ("areas", "shared * orientation *", "shared *"),
        ("areas", "_angle(starts, enters) + ", ""),
        ("geometry", "shapely.boundary(without_overlaps(areas))", "shapely.boundary(areas)"),
    ], compiled=True),
    *_mutants("constrain/kernel", ["constrain/test_heights.py"], [
        ("checks", "return x * x + y * y + z * z", "return x * x + y * y"),
    ], compiled=True),
    *_mutants("constrain", ["constrain/test_awaited.py", "constrain/test_sets.py"], [
        ("sets", "self.event < self.anchor[self.row]", "self.event > self.anchor[self.row]"),
        ("query", "return self.grows or self.is_negated", "return self.is_negated"),
    ], compiled=True),
    *_mutants("constrain", ["constrain/test_probabilities.py"], [
        ("probabilities", "np.where(excluded, 0.0, ", "np.where(False, 0.0, "),
        ("probabilities", "row, event = row[possible], event[possible]", "row, event = row, event"),
        ("job", "0.0 if operand.is_awaited else ", ""),
        ("sets", "left & after[index], more", "left, more"),
        ("solutions", "(variable.grows and not bound.is_certain)", "False"),
    ], compiled=True),
    *_mutants("constrain/kernel", ["test_decimal_edges.py"], [
        ("checks", "checks[check].rounding * max(abs(one), abs(other))", "0.0"),
        ("store", "now + pairs[pair].earliest - events[x].slack", "now + pairs[pair].earliest"),
    ], compiled=True),
    *_mutants("constrain", ["constrain/test_early.py"], [
        ("operator", "new[solutions].any(axis=1)", "new[solutions.max(axis=1)]"),
        ("operator", "(t >= low - span)", "(t >= low)"),
    ], compiled=True),
    *_mutants("events", [
        "constrain/test_against_loops.py::test_events_at_one_time_form_one_solution_in_any_order_of_packets",
    ], [
        ("batch", "tied[np.lexsort((hashes[tied], code[tied]))]", "tied"),
    ], compiled=True),
    *_mutants("constrain/kernel", [
        "constrain/test_against_loops.py::test_events_in_many_cells_match_those_of_adjacent_cells",
    ], [
        ("store", "_cell(coordinate + distance, low,", "_cell(coordinate, low,"),
    ], compiled=True),
    *_mutants("constrain/kernel", [
        "constrain/test_against_loops.py::test_an_event_that_expires_at_the_current_time_still_matches",
    ], [
        ("store", "if roles[items[index].role].expires >= now:", "if roles[items[index].role].expires > now:"),
    ], compiled=True),
    # ------------------------------------------------------------ inference
    # Mostly compiled: plain Python truncates the shifted numbers.
    *_mutants("inference/kernel", [
        "inference/test_reporting.py::test_reports_are_those_of_the_oracle",
        "inference/test_reporting.py::test_a_heartbeat_of_double_times_is_not_missed_by_a_rounding_error",
        "inference/test_reporting.py::test_the_next_interval_is_the_longest_of_the_last_four",
        "inference/test_reporting.py::test_the_variance_of_the_velocity_is_that_of_least_squares",
    ], [
        ("reporting", "elif since + ahead > policy.period + slack:", "elif since + ahead > policy.period:"),
        ("reporting", "for i in range(1, INTERVALS):", "for i in range(2, INTERVALS):"),
        ("reporting", "2 * noise / dt / dt + drift * dt / 3", "noise / dt / dt + drift * dt / 3"),
        ("reporting", "max(velocity_variance - covariance * covariance / total, 0.0)", "velocity_variance"),
    ]),
    *_mutants("inference/kernel", [
        "inference/test_kernel.py::test_filter_equals_the_enumeration_of_paths",
        "inference/test_kernel.py::test_weights_far_apart_keep_their_proportions",
    ], [
        ("weights", "out[y] = w + out[y] * DOWN", "out[y] = w"),
        ("weights", "(sensors.n_sure[x] << 32)", "(hits[x] >> 32 << 32)"),
    ], compiled=True),
    *_mutants("inference/kernel", [
        "inference/test_kernel.py::test_smooth_is_the_distribution_over_paths",
        "inference/test_kernel.py::test_dropped_bounds_the_error_of_pruned_rows",
        "inference/test_kernel.py::test_dropped_is_the_joint_probability_of_dropped_moves",
    ], [
        ("backward", "after, after_levels = marks[end // block]", "after, after_levels = marks[start // block]"),
        ("smoothing", "dropped += now[x] * moves[j]", "dropped += moves[j]"),
    ], compiled=True),
    *_mutants("inference/kernel", [
        "inference/test_kernel.py::test_ties_go_to_the_lower_code",
        "inference/test_kernel.py::test_viterbi_is_a_path_of_the_largest_probability",
        "inference/test_kernel.py::test_weights_far_apart_keep_their_proportions",
    ], [
        ("viterbi", "better = w > out[y]\n", "better = w >= out[y]\n"),
        ("viterbi", "w * DOWN > out[y]", "w > out[y]"),
    ], compiled=True),
    *_mutants("inference/kernel", [
        "inference/test_joint.py::test_rows_for_people_are_probabilities_of_pairs",
        "inference/test_joint.py::test_what_is_known_about_a_place_survives_a_thousand_contrary_readings",
    ], [
        ("pairs", "now[y] = max(plain(given[y], given_levels[y]) / total, LEAST)",
         "now[y] = plain(given[y], given_levels[y]) / total"),
        ("pairs", "for u in range(last, t, -1):", "for u in range(last, t + 1, -1):"),
    ], compiled=True),
    *_mutants("pattern/kernel", [
        "inference/test_joint.py::test_answers_are_given_the_readings_so_far_or_a_lag_later",
    ], [
        ("single", "if left[i] > ROUNDING and not weighted:", "if left[i] > ROUNDING:"),
        ("joint", "leaves = not weighted and", "leaves ="),
    ], compiled=True),
    *_mutants("inference/kernel", [
        "inference/test_infer.py::test_splitting_the_steps_changes_nothing",
    ], [
        ("inputs", "if last_seen[r] != t:", "if last_seen[r] < 0:"),
    ], compiled=True),
    *_mutants("inference/kernel", ["inference/test_infer.py::test_particles_of_a_later_call_are_those_of_one_call"], [
        ("particles", "number = (steps_before + t) *", "number = t *"),
    ], compiled=True),
    *_mutants("inference/kernel", [
        "inference/test_kernel.py::test_dropped_bounds_the_error_of_pruned_distributions",
        "inference/test_kernel.py::test_likelihoods_of_consecutive_calls_add_up",
    ], [
        ("rows", "p[row] /= kept", "p[row] /= total"),
        ("forward", "before = total_weight(weights, levels) if started else 1.0", "before = 1.0"),
    ], compiled=True),
    *_mutants("pattern", ["pattern/test_bounded.py"], [
        ("kernel/bounded", "max(0.0, least + other_least - 1.0)", "least * other_least"),
        ("kernel/bounded", "1.0 - (all_least - least)", "1.0 - all_least"),
        ("kernel/bounded", "of_key[0] = max(0.0, 1.0 - happened)", "of_key[0] = 0.0"),
        ("bounded", "(*sides[::-1], number, 1)", "(*sides[::-1], number, 0)"),
    ]),
    *_mutants("transport", ["composed/test_composed.py"], [
        ("dependence", "np.maximum(0.0, total - (count - 1))", "np.where(members, p, 1.0).prod(axis=1)"),
        ("dependence", "shared &= _may_equal(", "shared &= ~_may_equal("),
    ], compiled=True),
]  # fmt: skip
