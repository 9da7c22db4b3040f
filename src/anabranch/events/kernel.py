"""Compiled loops over events and their roles."""

from __future__ import annotations

import numpy as np

from anabranch.arrays import F64, I32, I64, U64
from anabranch.compiled import compiled

#: A De Bruijn number: the highest six bits of its product with a power of two identify the exponent.
DE_BRUIJN = 0x022FDD63CC95386D


@compiled
def gather_roles(first: I64, chosen: I64) -> tuple[I64, I64]:
    """The roles of chosen events: the index of the first role of each event, and the role numbers."""
    begins = np.zeros(len(chosen) + 1, np.int64)
    for index in range(len(chosen)):
        begins[index + 1] = begins[index] + first[chosen[index] + 1] - first[chosen[index]]
    roles = np.empty(begins[-1], np.int64)
    for index in range(len(chosen)):
        for number in range(begins[index + 1] - begins[index]):
            roles[begins[index] + number] = first[chosen[index]] + number
    return begins, roles


@compiled
def codes_between(values: F64, cuts: F64) -> I32:
    """The codes of numbers, as `_numbers` defines them."""
    codes = np.empty(len(values), np.int32)
    for i in range(len(values)):
        low, high = 0, len(cuts)
        while low < high:
            middle = (low + high) >> 1
            if cuts[middle] < values[i]:
                low = middle + 1
            else:
                high = middle
        codes[i] = 2 * low + 1 if low < len(cuts) and cuts[low] == values[i] else 2 * low
        if np.isnan(values[i]):
            codes[i] = 2 * len(cuts) + 1
    return codes


@compiled
def first_roles(codes: I32, tables: U64, starts: I64) -> I64:
    """The index of the first role of each row."""
    first = np.zeros(codes.shape[1] + 1, np.int64)
    for row in range(codes.shape[1]):
        count = 0
        for word in range(tables.shape[1]):
            bits = tables[starts[0] + codes[0, row], word]
            for k in range(1, len(codes)):
                bits &= tables[starts[k] + codes[k, row], word]
            while bits:
                bits &= bits - np.uint64(1)
                count += 1
        first[row + 1] = first[row] + count
    return first


@compiled
def role_numbers(codes: I32, tables: U64, starts: I64, first: I64, bit_index: I64) -> I64:
    """The numbers of the conditions that each row satisfies, row by row."""
    numbers = np.empty(first[-1], np.int64)
    role = 0
    for row in range(codes.shape[1]):
        for word in range(tables.shape[1]):
            bits = tables[starts[0] + codes[0, row], word]
            for k in range(1, len(codes)):
                bits &= tables[starts[k] + codes[k, row], word]
            while bits:
                lowest = bits & (~bits + np.uint64(1))
                numbers[role] = 64 * word + bit_index[(lowest * np.uint64(DE_BRUIJN)) >> np.uint64(58)]
                role += 1
                bits ^= lowest
    return numbers
