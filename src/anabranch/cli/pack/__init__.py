"""`anabranch pack`: an archive for `spark.archives`, with which executors need neither Python nor the package."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from anabranch.cli.messages import say

Output = Annotated[
    Path, typer.Option("--output", metavar="FILE", help="The archive: a name that ends with .tar.gz or .tgz.")
]
With = Annotated[
    list[str] | None,
    typer.Option(
        "--with", metavar="NAME", help="Also pack this installed package and what it requires (may be repeated)."
    ),
]
Without = Annotated[
    list[str] | None,
    typer.Option("--without", metavar="NAME", help="Leave out this package (may be repeated)."),
]
# Most bytes are machine code, for which a higher level takes three times as long and gains little.
Level = Annotated[int, typer.Option("--level", min=0, max=9, help="Level of compression; 0 does not compress.")]
Portable = Annotated[
    bool,
    typer.Option("--portable", help="Compile the kernels for all processors, not only for that of this machine."),
]


def command(
    output: Output = Path("anabranch-env.tar.gz"),
    with_: With = None,
    without: Without = None,
    portable: Portable = False,
    level: Level = 1,
) -> None:
    """Pack Python, the package and its dependencies into an archive for Spark's executors.

    Spark and Java are left out, because a cluster has them; --with pyspark adds Spark.
    """
    from anabranch.cli.pack import contents
    from anabranch.cli.pack.archive import write_archive

    began = time.monotonic()
    python = contents.find_interpreter()
    chosen = contents.distributions(with_ or (), {*contents.LEFT_OUT, *(without or ())})
    say(f"packing {', '.join(distribution.metadata['Name'] for distribution in chosen)}")
    packages = python.packages.relative_to(python.prefix).as_posix()
    members = list(contents.interpreter_members(python))
    for distribution in chosen:
        members += contents.distribution_members(distribution, packages)
    members += contents.kernel_members(packages, portable, say)
    # A file may belong to several distributions, such as the folder of a namespace.
    unique = list({member.name: member for member in members}.values())
    write_archive(
        output,
        unique,
        level,
        lambda n_files, n_bytes: say(f"{n_files:,} of {len(unique):,} files, {_megabytes(n_bytes)}"),
    )
    size = _megabytes(output.stat().st_size)
    say(f"{output}: {len(unique):,} files, {size}, {time.monotonic() - began:.1f} s")
    say(
        f"use it with --archive {output}, or with spark.archives={output}#environment and "
        "PYSPARK_PYTHON=./environment/bin/python"
    )


def _megabytes(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:,.0f} MB"
