"""Models in folders: a written model can be read again, and each error is one line with its file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from numpy.testing import assert_allclose, assert_array_equal

from anabranch.errors import DataError
from anabranch.inference.hmm import Entries, Hmm, Sensing, make_hmm
from anabranch.inference.model import read_hmm, write_hmm
from anabranch.inference.states import sensors_of
from tests.inference.models import Dense, models, random_model

INITIAL = "location,p\nhall,0.25\noffice,0.75\n"
TRANSITION = "prev_location,location,p\nhall,hall,0.5\nhall,office,0.5\noffice,office,0.9\noffice,hall,0.1\n"
DETECTION = "reader,location,p\nwest,hall,0.6\ndoor,hall,0.1\ndoor,office,0.2\n"
EMISSION = "location,reader,p\nhall,west,0.7\nhall,,0.3\noffice,,1\n"


def folder_of(path: Path, **files: str | None) -> Path:
    """A folder with a model; some of its files are replaced or, if None, missing."""
    texts = {"initial": INITIAL, "transition": TRANSITION, "detection": DETECTION} | files
    for name, text in texts.items():
        if text is not None:
            (path / f"{name}.csv").write_text(text, encoding="utf-8")
    return path


def equal(one: Hmm, other: Hmm, rtol: float = 0.0) -> bool:
    """Whether two models are equal; probabilities may have a relative error of `rtol`."""
    for name in Hmm.__slots__:
        first, second = getattr(one, name), getattr(other, name)
        if isinstance(first, np.ndarray) and first.dtype == np.float64:
            assert_allclose(first, second, rtol=rtol, err_msg=name)
        else:
            assert_array_equal(first, second, err_msg=name)
    return True


def test_a_folder_is_read(tmp_path: Path) -> None:
    hmm = read_hmm(folder_of(tmp_path))
    assert hmm.locations == ("hall", "office")
    assert hmm.readers == ("west", "door")
    assert hmm.initial.tolist() == [0.25, 0.75]
    assert (hmm.starts.tolist(), hmm.targets.tolist(), hmm.p.tolist()) == (
        [0, 2, 4],
        [0, 1, 0, 1],
        [0.5, 0.5, 0.1, 0.9],
    )
    assert hmm.sensing is Sensing.DETECTION
    assert (hmm.reader_starts.tolist(), hmm.reader_locations.tolist()) == ([0, 1, 3], [0, 0, 1])
    assert hmm.reader_p.tolist() == [0.6, 0.1, 0.2]
    assert hmm.silence is None


def test_an_empty_reader_is_silence(tmp_path: Path) -> None:
    hmm = read_hmm(folder_of(tmp_path, detection=None, emission=EMISSION))
    assert hmm.readers == ("west",)
    assert hmm.sensing is Sensing.EMISSION
    assert hmm.silence is not None
    assert hmm.silence.tolist() == [0.3, 1.0]
    assert sensors_of(hmm).quiet.tolist() == [0.3, 1.0]


def test_columns_may_have_the_names_of_the_streams(tmp_path: Path) -> None:
    (tmp_path / "renamed").mkdir()
    files = {"initial": INITIAL, "transition": TRANSITION, "detection": DETECTION}
    renamed = {name: text.replace("location", "Room").replace("reader", "antenna") for name, text in files.items()}
    hmm = read_hmm(folder_of(tmp_path))
    assert equal(read_hmm(folder_of(tmp_path / "renamed", **renamed), value="room", reader="antenna"), hmm)
    assert equal(read_hmm(tmp_path, value="room", reader="antenna"), hmm)


def test_a_location_may_be_missing_in_initial_and_zeros_are_dropped(tmp_path: Path) -> None:
    hmm = read_hmm(
        folder_of(tmp_path, initial="location,p\noffice,1\n", transition=TRANSITION + "office,attic,0\nattic,hall,1\n")
    )
    assert hmm.locations == ("office", "hall", "attic")
    assert hmm.initial.tolist() == [1.0, 0.0, 0.0]
    assert hmm.targets.tolist() == [0, 1, 0, 1, 1]


@given(models())
def test_a_written_model_can_be_read_again(tmp_path_factory: pytest.TempPathFactory, model: Dense) -> None:
    if model.sensing is Sensing.DETECTION and not model.sensors.any():
        return  # A table without rows is an error.
    folder = tmp_path_factory.mktemp("model")
    hmm = model.hmm()
    write_hmm(hmm, folder, value="room", reader="antenna")
    first_read = read_hmm(folder, value="room", reader="antenna")
    assert first_read.locations == hmm.locations
    assert set(first_read.readers) <= set(hmm.readers)
    assert np.allclose(first_read.p, hmm.p, rtol=1e-15)
    # Reading scales distributions to sum to 1, which can change the last bits again.
    assert equal(read_again(first_read, folder), first_read, rtol=1e-15)


def read_again(hmm: Hmm, folder: Path) -> Hmm:
    write_hmm(hmm, folder)
    return read_hmm(folder)


TEMPERING = "given,exponent\nall readings,0.25\nreadings so far,0.5\n"
STAGES = "location,stages\noffice,3\n"
GAUSSIAN = "quantity,location,reader,mean,deviation\nrssi,hall,west,-60,2\nrssi,hall,,-50,3\nrssi,office,door,-40.5,4\n"


def test_the_optional_files_are_read_and_written(tmp_path: Path) -> None:
    files = {"stages": STAGES, "gaussian": GAUSSIAN, "tempering": TEMPERING}
    hmm = read_hmm(folder_of(tmp_path, **files))
    assert (hmm.stages.tolist(), hmm.exponent, hmm.exponent_so_far) == ([1, 3], 0.25, 0.5)
    assert hmm.gaussians.quantities == ("rssi",)
    # west in the hall, door in the hall (by the row without a reader), and door in the office
    assert hmm.gaussians.mean.tolist() == [[-60.0, -50.0, -40.5]]
    assert hmm.gaussians.deviation.tolist() == [[2.0, 3.0, 4.0]]
    again = read_again(hmm, tmp_path / "again")
    assert equal(replace(again, gaussians=None), replace(hmm, gaussians=None))
    assert again.gaussians.mean.tolist() == hmm.gaussians.mean.tolist()
    plain = read_again(
        replace(hmm, stages=None, exponent=1.0, exponent_so_far=None, gaussians=None), tmp_path / "again"
    )
    assert (plain.stages, plain.exponent, plain.gaussians) == (None, 1.0, None), "files of an earlier model are removed"


ERRORS = [
    ({"stages": "location,stages\nattic,2\n"}, r"stages\.csv:2: location 'attic' is in neither"),
    ({"stages": "location,stages\nhall,2\nhall,3\n"}, r"stages\.csv:3: there are two rows for 'hall'"),
    ({"stages": "location,stages\nhall,2.5\n"}, r"stages\.csv:2: stages is 2.5; it must be an integer from 1 to 50"),
    ({"tempering": TEMPERING.replace("0.25", "0")}, r"tempering\.csv:2: the exponent is 0; it must be above 0"),
    (
        {"tempering": TEMPERING.replace("all", "no")},
        r"tempering\.csv:2: given is 'no readings'; write one row",
    ),
    ({"tempering": "given,exponent\nall readings,0.5\n"}, r"tempering\.csv: write one row with each of all readings"),
    ({"gaussian": GAUSSIAN.replace(",4\n", ",0\n")}, r"gaussian\.csv:4: a mean must be finite"),
    ({"gaussian": GAUSSIAN.replace("hall,,", "hall,west,")}, r"gaussian\.csv:3: there are two rows for 'rssi', 'hall'"),
    ({"gaussian": GAUSSIAN.replace("office", "attic")}, r"gaussian\.csv:4: location 'attic' is in neither"),
    (
        {"gaussian": GAUSSIAN.replace("rssi,hall,,-50,3\n", "")},
        r"gaussian\.csv: there is no row for rssi of reader 'door' at location 'hall'; add it",
    ),
    ({"initial": None}, r"initial\.csv: there is no such file"),
    ({"transition": None}, r"transition\.csv: there is no such file"),
    ({"detection": None}, r"neither detection\.csv nor emission\.csv"),
    ({"emission": EMISSION}, r"both detection\.csv and emission\.csv"),
    ({"initial": ""}, r"initial\.csv: one column location is needed; the columns are: none"),
    ({"initial": "location,p\n"}, r"initial\.csv: there are no rows"),
    ({"initial": "place,p\nhall,1\n"}, r"initial\.csv: one column location is needed; the columns are: place, p"),
    ({"transition": "location,p\nhall,1\n"}, r"transition\.csv: one column prev_location is needed"),
    ({"detection": "reader,location,chance\nwest,hall,1\n"}, r"detection\.csv: one column p is needed"),
    ({"initial": "location,p\nhall,much\n"}, r"initial\.csv:2: p is 'much', not a number"),
    ({"initial": "location,p\nhall,\n"}, r"initial\.csv:2: p is '', not a number"),
    ({"initial": "location,p\nhall\n"}, r"initial\.csv:2: the row has 1 columns"),
    ({"initial": "location,p\nhall,nan\noffice,1\n"}, r"initial\.csv: p of 'hall' is nan"),
    ({"initial": "location,p\nhall,inf\n"}, r"initial\.csv: p of 'hall' is inf"),
    ({"transition": TRANSITION.replace("0.9", "-0.9")}, r"transition\.csv: p of 'office', 'office' is -0\.9"),
    ({"detection": DETECTION.replace("0.6", "1.6")}, r"detection\.csv: p of 'west', 'hall' is 1\.6"),
    ({"detection": DETECTION.replace("0.6", "1e-80")}, r"detection\.csv: p of 'west', 'hall' is 1e-80; write 0"),
    ({"initial": INITIAL.replace("0.75", "0.7")}, r"initial\.csv: p sums to 0\.95; it must sum to 1"),
    ({"transition": TRANSITION.replace("0.9", "0.8")}, r"transition\.csv: p from location 'office' sums to 0\.9;"),
    (
        {"detection": None, "emission": EMISSION.replace("0.7", "0.5")},
        r"emission\.csv: p at location 'hall' sums to 0\.8;",
    ),
    ({"detection": None, "emission": "location,reader,p\nhall,west,1\n"}, r"p at location 'office' sums to 0;"),
    ({"transition": TRANSITION + "attic,hall,0\n"}, r"p from location 'attic' sums to 0;"),
    ({"transition": TRANSITION + "office,attic,0\n"}, r"there is no transition from location 'attic'"),
    ({"initial": INITIAL + "attic,0\n"}, r"there is no transition from location 'attic'"),
    ({"detection": DETECTION + "west,attic,0.5\n"}, r"detection\.csv: location 'attic' is in neither"),
    ({"detection": DETECTION + ",hall,0.5\n"}, r"detection\.csv: a row has no reader; name"),
    ({"initial": INITIAL + ",0\n"}, r"initial\.csv: a row has no location"),
    ({"transition": TRANSITION + ",hall,1\n"}, r"transition\.csv: a row has no location"),
    ({"initial": INITIAL + "hall,0\n"}, r"initial\.csv: there are two rows for 'hall'; keep one"),
    ({"transition": TRANSITION + "hall,office,0.5\n"}, r"transition\.csv: there are two rows for 'hall', 'office';"),
    ({"detection": DETECTION + "west,hall,0.5\n"}, r"detection\.csv: there are two rows for 'west', 'hall'; keep one"),
]


@pytest.mark.parametrize(("files", "message"), ERRORS)
def test_each_error_is_one_line_with_its_file(tmp_path: Path, files: dict[str, str | None], message: str) -> None:
    with pytest.raises(DataError, match=message) as raised:
        read_hmm(folder_of(tmp_path, **files))
    assert len(str(raised.value).splitlines()) == 1
    assert str(tmp_path) in str(raised.value)


def test_a_file_that_is_not_text_is_an_error_of_one_line(tmp_path: Path) -> None:
    (folder_of(tmp_path) / "initial.csv").write_bytes(b"location,p\n\xff\xfe,1\n")
    with pytest.raises(DataError, match=r"initial\.csv: cannot be read") as raised:
        read_hmm(tmp_path)
    assert "\n" not in str(raised.value)


def test_a_model_needs_locations() -> None:
    empty = Entries.of_dense(np.zeros((0, 0)))
    with pytest.raises(DataError, match="no locations"):
        make_hmm([], [], np.zeros(0), empty, Sensing.DETECTION, empty)


def test_sums_within_the_tolerance_become_1() -> None:
    model = random_model(4, 2, seed=0)
    hmm = Dense(model.initial * (1 + 5e-7), model.transition * (1 - 5e-7), model.sensing, model.sensors).hmm()
    assert hmm.initial.sum() == pytest.approx(1, abs=1e-15)
    assert np.add.reduceat(hmm.p, hmm.starts[:-1]) == pytest.approx(np.ones(4), abs=1e-15)
