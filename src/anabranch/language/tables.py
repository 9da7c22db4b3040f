"""The LALR tables of the grammar, saved as data: building them takes longer than checking a workbook.

`grammar.json` has the tables of `grammar.lark`. After a change of the grammar, or of Lark, write it again::

    python -m anabranch.language.tables

A file that belongs to another grammar or to another version of Lark is not used: the tables are then built.
"""

from __future__ import annotations

import hashlib
import json
from importlib import resources
from typing import Any

import lark
from lark import Lark
from lark.grammar import Rule
from lark.lexer import TerminalDef

#: A saved parser. A state is a list of symbols with their actions: the state to go to, or -1 - r to reduce by rule r.
Saved = dict[str, Any]

#: What can be parsed: a statement, and a query without a name.
STARTS = ("start", "bare_query")

#: The parts that are written with one entry per line.
_LONG = ("terminals", "rules", "states")

_FOLDER = resources.files("anabranch.language")


def load_parser() -> Lark:
    """The parser of workbooks, from the saved tables if they belong to this grammar and this version of Lark."""
    grammar = _FOLDER.joinpath("grammar.lark").read_text(encoding="utf-8")
    try:
        saved = json.loads(_FOLDER.joinpath("grammar.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return build_parser(grammar)
    return restore(saved) if saved["made_from"] == _origin(grammar) else build_parser(grammar)


def build_parser(grammar: str) -> Lark:
    """The parser of a grammar."""
    return Lark(grammar, parser="lalr", lexer="basic", propagate_positions=True, start=list(STARTS))


def saved_tables(grammar: str) -> Saved:
    """The tables of a grammar as data for JSON; equal grammars give equal data.

    Lark numbers the states of a parser differently in each process. They are numbered here in the order in which they
    are reached from the first ones.
    """
    data, memo = build_parser(grammar).memo_serialize([TerminalDef, Rule])
    table = data["parser"].pop("parser")
    names = table["tokens"]
    rows = {state: {names[token]: action for token, action in row.items()} for state, row in table["states"].items()}
    numbers = _in_order(rows, [table["start_states"][name] for name in STARTS])
    symbols = {name: number for number, name in enumerate(sorted(names.values()))}
    rules = {entry["@"]: number for number, entry in enumerate(data.pop("rules"))}
    return {
        "made_from": _origin(grammar),
        "options": data["options"],
        "symbols": list(symbols),
        "starts": {name: numbers[table["start_states"][name]] for name in STARTS},
        "ends": {name: numbers[table["end_states"][name]] for name in STARTS},
        "terminals": [memo[entry["@"]] for entry in data["parser"]["lexer_conf"]["terminals"]],
        "rules": [memo[number] for number in rules],
        "states": [
            [
                [symbols[name], -1 - rules[target["@"]] if reduces else numbers[target]]
                for name, (reduces, target) in sorted(rows[state].items())
            ]
            for state in numbers
        ],
    }


def _in_order(rows: dict[int, dict[str, tuple[int, Any]]], starts: list[int]) -> dict[int, int]:
    """New numbers for the states, breadth first and by the names of their symbols."""
    numbers = {state: number for number, state in enumerate(starts)}
    for state in (reached := list(starts)):
        for _, (reduces, target) in sorted(rows[state].items()):
            if not reduces and target not in numbers:
                numbers[target] = len(numbers)
                reached.append(target)
    return numbers


def restore(saved: Saved) -> Lark:
    """The parser that has been saved, through the function that Lark's stand-alone parsers use."""
    n_terminals = len(saved["terminals"])
    memo = dict(enumerate([*saved["terminals"], *saved["rules"]]))
    terminals = [{"@": number} for number in range(n_terminals)]
    rules = [{"@": number} for number in range(n_terminals, len(memo))]
    states = {
        state: {symbol: (0, action) if action >= 0 else (1, rules[-1 - action]) for symbol, action in row}
        for state, row in enumerate(saved["states"])
    }
    table = {
        "tokens": dict(enumerate(saved["symbols"])),
        "states": states,
        "start_states": saved["starts"],
        "end_states": saved["ends"],
    }
    lexer = {"terminals": terminals, "ignore": [], "g_regex_flags": 0, "use_bytes": False, "lexer_type": "basic"}
    conf = {"rules": rules, "start": list(saved["starts"]), "parser_type": "lalr"}
    data = {
        "parser": {
            "lexer_conf": lexer | {"__type__": "LexerConf"},
            "parser_conf": conf | {"__type__": "ParserConf"},
            "parser": table,
            "__type__": "ParsingFrontend",
        },
        "rules": rules,
        "options": saved["options"],
        "__type__": "Lark",
    }
    parser: Lark = Lark._load_from_dict(data, memo)  # type: ignore[no-untyped-call]
    return parser


def _origin(grammar: str) -> dict[str, str]:
    """What saved tables belong to: a grammar and a version of Lark."""
    return {"grammar": hashlib.sha256(grammar.encode()).hexdigest(), "lark": lark.__version__}


def as_text(saved: Saved) -> str:
    """The tables as JSON."""
    parts = []
    for name, value in saved.items():
        lines = [json.dumps(entry, separators=(",", ":")) for entry in value] if name in _LONG else []
        parts.append(f'"{name}": ' + ("[\n" + ",\n".join(lines) + "\n]" if lines else json.dumps(value)))
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main() -> None:
    """Write `grammar.json` next to `grammar.lark`."""
    with resources.as_file(_FOLDER) as folder:
        grammar = (folder / "grammar.lark").read_text(encoding="utf-8")
        (folder / "grammar.json").write_text(as_text(saved_tables(grammar)), encoding="utf-8")


if __name__ == "__main__":
    main()
